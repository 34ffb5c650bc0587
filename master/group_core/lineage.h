#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "master/group_core/group_records.h"

namespace muster {

/// What the journal holds of the group: attempts, the newest step, the checkpoint. Every change of
/// it goes through here, and the numbers that must not shrink are checked. Pure; not thread-safe.
class Lineage {
 public:
  explicit Lineage(GroupRecords records);

  bool begun() const { return group_.lineage != LineageNumber(); }
  LineageNumber number() const { return group_.lineage; }
  StepNumber base() const { return group_.base; }
  AttemptNumber attempt() const { return group_.attempt; }
  /// Of the newest attempt, by rank.
  const std::vector<GroupProcess>& attempt_members() const { return group_.members; }
  StepNumber step() const { return step_.step; }
  /// In which the newest step happened; 0: in a former lineage, or it is the step 0.
  AttemptNumber step_attempt() const { return step_.attempt; }
  /// Of the newest step.
  uint64_t step_records() const { return step_.records; }
  const GroupModelRecord& model() const { return model_; }
  const std::optional<CheckpointRecord>& checkpoint() const { return checkpoint_; }
  /// The step of the checkpoint; 0: none.
  StepNumber checkpoint_step() const;
  /// How many steps may be undone.
  uint64_t steps_after_checkpoint() const;

  /// True if the process has the state after the newest step, or the state before it and the sum
  /// that makes it: it can take part in the next step.
  bool Holds(const GroupExchangeRequest& report) const;
  /// The process lacks `missed` steps at most, which others can tell it.
  bool IsClose(const GroupExchangeRequest& report, uint64_t missed) const;

  /// The first lineage, or another one after the step 0, which nobody holds any more.
  void Begin(GroupModelRecord model);
  /// An attempt of the next step with these members.
  void NewAttempt(std::vector<GroupProcess> members);
  /// The next step has happened in the newest attempt, with this sum over so many records.
  void Commit(const ShardId& shard, uint32_t digest, uint64_t records);
  /// A capture is stored. Requires a step of this lineage that is newer than the checkpoint.
  void Accept(CheckpointRecord checkpoint);
  /// The steps after `base` are undone. Requires that the checkpoint has none of them.
  void RollBack(StepNumber base);

  void Collect(std::vector<GroupMutation>* mutations);

 private:
  GroupModelRecord model_;
  GroupRecord group_;
  StepRecord step_;
  std::optional<CheckpointRecord> checkpoint_;
  bool model_changed_ = false, group_changed_ = false, step_changed_ = false,
       checkpoint_changed_ = false;
};

}  // namespace muster
