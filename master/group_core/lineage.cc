#include "master/group_core/lineage.h"

#include <utility>

#include "base/check.h"

namespace muster {

Lineage::Lineage(GroupRecords records)
    : model_(std::move(records.model).value_or(GroupModelRecord())),
      group_(std::move(records.group).value_or(GroupRecord())),
      step_(records.step.value_or(StepRecord())),
      checkpoint_(std::move(records.checkpoint)) {}

StepNumber Lineage::checkpoint_step() const {
  return checkpoint_.has_value() ? checkpoint_->label.step : StepNumber();
}

uint64_t Lineage::steps_after_checkpoint() const {
  MUSTER_CHECK(checkpoint_step() <= step());
  return step().value() - checkpoint_step().value();
}

bool Lineage::Holds(const GroupExchangeRequest& report) const {
  if (!begun() || !report.state.has_value() || report.state->lineage != number()) return false;
  if (report.state->step == step()) return true;
  return report.state->step.Next() == step() && step_attempt() != AttemptNumber() &&
         report.sum.has_value() && report.sum->attempt == step_attempt() &&
         report.sum->step == step();
}

bool Lineage::IsClose(const GroupExchangeRequest& report, uint64_t missed) const {
  return begun() && report.state.has_value() && report.state->lineage == number() &&
         report.state->step <= step() && report.state->step >= base() &&
         report.state->step.value() + missed >= step().value();
}

void Lineage::Begin(GroupModelRecord model) {
  MUSTER_CHECK(step() == StepNumber() && !checkpoint_.has_value());
  model_ = std::move(model);
  // A number is left out: who has a state of the former lineage must not take it for the base of
  // this one, as after a rollback.
  if (begun()) group_.lineage = group_.lineage.Next();
  group_.lineage = group_.lineage.Next();
  group_.base = StepNumber();
  step_ = {.lineage = group_.lineage};
  model_changed_ = group_changed_ = step_changed_ = true;
}

void Lineage::NewAttempt(std::vector<GroupProcess> members) {
  MUSTER_CHECK(begun() && !members.empty());
  group_.attempt = group_.attempt.Next();
  group_.members = std::move(members);
  group_changed_ = true;
}

void Lineage::Commit(const ShardId& shard, uint32_t digest, uint64_t records) {
  MUSTER_CHECK(begun() && attempt() != AttemptNumber());
  step_ = {number(), step_.step.Next(), attempt(), digest, shard, records};
  step_changed_ = true;
}

void Lineage::Accept(CheckpointRecord checkpoint) {
  MUSTER_CHECK(checkpoint.label.lineage == number() && checkpoint.label.step <= step() &&
               checkpoint.label.step > checkpoint_step());
  checkpoint_ = std::move(checkpoint);
  checkpoint_changed_ = true;
}

void Lineage::RollBack(StepNumber base) {
  MUSTER_CHECK(base >= checkpoint_step() && base < step());
  group_.lineage = group_.lineage.Next();
  group_.base = base;
  step_ = {.lineage = group_.lineage, .step = base};
  group_changed_ = step_changed_ = true;
}

void Lineage::Collect(std::vector<GroupMutation>* mutations) {
  if (std::exchange(model_changed_, false)) mutations->emplace_back(model_);
  // Rules 12.1 and 12.2.
  if (std::exchange(group_changed_, false)) mutations->emplace_back(group_);
  if (std::exchange(step_changed_, false)) mutations->emplace_back(step_);
  if (std::exchange(checkpoint_changed_, false)) mutations->emplace_back(*checkpoint_);
}

}  // namespace muster
