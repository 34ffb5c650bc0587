#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "master/group_core/captures.h"
#include "master/group_core/forming.h"
#include "master/group_core/group_books.h"
#include "master/group_core/group_core.h"
#include "master/group_core/step_work.h"
#include "master/group_core/suspicions.h"

namespace muster {

/// What each process must know, and the number of its news.
///
/// Owns what was told last. Pure; not thread-safe.
class Answers {
 public:
  /// All of them outlive it.
  Answers(const GroupBooks* books, const StepInWork* work, const Captures* captures,
          const Suspicions* suspicions)
      : books_(books), work_(work), captures_(captures), suspicions_(suspicions) {}

  /// Looks whether there is news for all processes. `news`: the counter of the books.
  void Number(const Forming& forming, uint64_t* news);
  uint64_t NewsFor(const GroupProcess& process) const;
  GroupExchangeReply For(const GroupProcess& process) const;
  GroupCore::View Show() const;

 private:
  /// All that is told to every process; what is not in it depends on something that is.
  struct Told {
    LineageNumber lineage;
    StepNumber step;
    AttemptNumber attempt;
    bool formed = false;
    LeaseToken token;
    std::string waits;
    std::optional<StateCapture> capture;
    uint64_t source = 0;
    StepNumber checkpoint;
    bool keeps_sums = false;
    uint64_t forming = 0;
    bool inquiry = false;
    bool over = false;
    friend bool operator==(const Told&, const Told&) = default;
  };
  std::string WaitsOf(const Forming& forming) const;
  GroupMember MemberOf(const GroupProcess& process) const;
  StepWork WorkOf(uint32_t rank) const;
  /// The others wait for what this process has to do, or it hangs.
  bool Awaits(const GroupProcess& key, const Process& process) const;
  bool AwaitsMember(const GroupProcess& member) const;
  /// It could get on by itself.
  static bool AwaitsLearner(const Process& process);

  const GroupBooks* const books_;
  const StepInWork* const work_;
  const Captures* const captures_;
  const Suspicions* const suspicions_;
  Told told_;
  uint64_t told_number_ = 0;
};

}  // namespace muster
