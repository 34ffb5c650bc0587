#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "master/group_core/group_books.h"

namespace muster {

/// Members that accuse each other of being out of reach. Either may be right: the others are asked
/// who lives, and the step is tried again. If the same two disagree again and again, one of them
/// has to go.
///
/// Owns the inquiry of this attempt, and how often each pair has disagreed. Pure; not thread-safe.
class Suspicions {
 public:
  /// Attempts in which a pair may disagree. One that has lost a member for that, and has made no
  /// step together since, may not disagree again.
  static constexpr uint32_t kStrikesMax = 3;
  /// Each time, the member of such a pair stays away twice as long.
  static constexpr uint32_t kDoublingsMax = 6;

  /// `books` outlives it.
  explicit Suspicions(GroupBooks* books) : books_(books) {}

  /// Takes what the members of this attempt say. It may begin an inquiry: then they are to call.
  void Take(TimePoint now);
  /// True while the members are asked who lives.
  bool inquires() const { return began_.has_value(); }
  /// True while members of this attempt accuse the process.
  bool Suspects(const GroupProcess& process) const { return accused_.contains(process); }
  /// Who has to go, and why.
  struct Verdict {
    std::vector<std::pair<GroupProcess, std::string>> out;
    /// One of them disagreed too often, and stays away for a while.
    std::optional<GroupProcess> evicted;
    std::chrono::milliseconds away{0};
    std::string why;
  };
  /// None: there is no inquiry, or it goes on.
  std::optional<Verdict> Judge(TimePoint now);
  /// A new attempt begins: what was said of the former one is void.
  void OnAttempt();
  /// A step has happened: whoever disagreed has found a way.
  void OnStep();

 private:
  using Pair = std::pair<std::string, std::string>;  // of workers, in order
  void Accuse(const GroupProcess& accuser, const SuspectedMember& suspected);
  /// The one of the pair that more members accuse; otherwise the one of the higher rank.
  GroupProcess WorseOf(const Pair& pair) const;

  GroupBooks* const books_;
  std::optional<TimePoint> began_;
  /// accused -> who accuses it, with what it says.
  std::map<GroupProcess, std::map<GroupProcess, std::string>> accused_;
  std::map<Pair, uint32_t> strikes_;
  /// How often the pair has lost a member since its last step together.
  std::map<Pair, uint32_t> evictions_;
};

}  // namespace muster
