#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "master/group_core/group_books.h"
#include "master/group_core/step_work.h"
#include "master/group_core/suspicions.h"

namespace muster {

/// When a step has happened: all members of the attempt have its sum, and the sums are equal.
///
/// Owns how often in a row they were not. Pure; not thread-safe.
class Votes {
 public:
  /// So many attempts with different sums fail the job.
  static constexpr uint32_t kDifferMax = 3;

  /// All of them outlive it.
  Votes(GroupBooks* books, StepInWork* work, Suspicions* suspicions)
      : books_(books), work_(work), suspicions_(suspicions) {}

  enum class Outcome : uint8_t {
    kOpen,      // not all members have voted
    kHappened,  // the step is committed
    kFailed,    // it must be tried again
  };
  /// Requires that the process of every member is known. `why`: of kFailed.
  Outcome Count(std::string* why);

 private:
  const HeldSum* VoteOf(const GroupProcess& member) const;
  /// A member could not compute its share.
  bool AnyFailed(std::string* why);
  /// The members whose votes count.
  std::vector<GroupProcess> Voters() const;
  bool Differ(const std::vector<GroupProcess>& voters, std::string* text) const;
  void Commit(const std::vector<GroupProcess>& voters);
  /// Ends the replay in work if all members have pushed their parts again.
  void CountReplay();

  GroupBooks* const books_;
  StepInWork* const work_;
  Suspicions* const suspicions_;
  uint32_t differed_ = 0;
};

}  // namespace muster
