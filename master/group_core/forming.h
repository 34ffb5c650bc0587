#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "master/group_core/captures.h"
#include "master/group_core/group_books.h"
#include "master/group_core/membership.h"
#include "master/group_core/step_work.h"

namespace muster {

/// What happens while the group has no members: it begins, it goes on with those that hold the
/// newest step, or steps are undone that nobody holds any more.
///
/// Owns whom it waits for, and since when. Pure; not thread-safe.
class Forming {
 public:
  /// All of them outlive it. A master that continues waits for the members of the last attempt.
  Forming(GroupBooks* books, Membership* membership, StepInWork* work, Captures* captures);

  /// The group has lost its last members.
  void Begin(std::vector<GroupProcess> awaited);
  /// Requires that there are no members.
  void Advance(TimePoint now);
  /// Refuses the process if it has another model than the group.
  void CheckModel(const std::string& worker, Process* process);
  /// What it waits for, for people.
  const std::string& waits() const { return waits_; }
  /// The number of the news that told of it. A process that has it knows the newest lineage.
  uint64_t number() const { return number_; }

 private:
  bool HasHeard(const Process& process) const;
  /// Nothing more is to be expected of it.
  bool IsSettled(const GroupProcess& awaited) const;
  bool AllSettled() const;
  bool IsReady(const Process& process) const;
  /// Every process that may become a member fulfils it.
  template <typename Predicate>
  bool All(Predicate predicate) const;
  std::vector<GroupProcess> Ready() const;
  bool AnyUsable() const;
  /// No other worker can come soon.
  bool AllWorkersAreHere() const;

  void GoOn(std::vector<GroupProcess> ready, TimePoint now);
  /// Nobody holds the newest step.
  void LookBack(TimePoint now);
  void RollBack(StepNumber base);
  /// The most processes of one model, by name.
  std::vector<GroupProcess> LargestClass(bool again) const;
  void Found(bool again, TimePoint now);

  GroupBooks* const books_;
  Membership* const membership_;
  StepInWork* const work_;
  Captures* const captures_;
  /// Those that may hold the newest step.
  std::vector<GroupProcess> awaited_;
  uint64_t number_ = 0;
  /// Since when enough processes are there for what comes next.
  std::optional<TimePoint> enough_since_;
  /// Since when processes are there, but none that holds the newest step.
  std::optional<TimePoint> without_since_;
  std::string waits_;
};

}  // namespace muster
