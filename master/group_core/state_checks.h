#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "master/group_core/group_books.h"
#include "proto/messages/group_control.h"

namespace muster {

/// Whether the members have the same state: their digests of one state are compared. A member whose
/// digest differs from that of most members has another state. So `apply` has done there what it
/// did nowhere else, or the state was changed outside of it.
///
/// Owns nothing. Pure; not thread-safe.
class StateChecks {
 public:
  /// The state after every so many steps is checked. An `apply` reads and writes the whole state,
  /// and a digest reads it once, so a check costs less than this part of the time in `apply`.
  static constexpr uint64_t kEvery = 64;
  /// The state after this step is checked. Those of a new job are checked more often, because most
  /// errors of a trainer show at once.
  static bool IsDue(StepNumber step);

  /// `books` outlives it.
  explicit StateChecks(const GroupBooks* books) : books_(books) {}

  struct Verdict {
    /// Their state is not that of most members; and why. Empty: no state is that of most members,
    /// so nobody knows which one is right.
    std::vector<std::pair<GroupProcess, std::string>> out;
    std::string why;
  };
  /// None: the states are the same, or too few members have said what theirs is. Requires that the
  /// process of every member is known.
  std::optional<Verdict> Judge() const;

 private:
  /// Of the newest state of this lineage of which a member has told a digest.
  std::optional<StateLabel> Newest() const;

  const GroupBooks* const books_;
};

}  // namespace muster
