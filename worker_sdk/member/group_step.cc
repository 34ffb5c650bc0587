#include "worker_sdk/member/group_step.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"

namespace muster::internal {

GroupStepImpl::GroupStepImpl(GroupImpl* group, sdk::TrainerTask task, const StepRecords& read,
                             ShardMetrics metrics)
    : group_(group),
      tables_(!group->trains_locally()),
      task_(std::move(task)),
      state_copied_(group->TakeStateCopied()) {
  const StepWork& work = task_.work;
  facts_ = {read.records->records.size(), work.shard.epoch.value(),
            work.work.mode == DatasetMode::kEvaluate ? 1u : 0u};
  sdk::ShardRun run;
  run.grant.shard = work.shard;
  run.grant.token = work.token;
  run.grant.work = work.work;
  run.grant.restore_epoch = work.restore_epoch;
  run.run = RunNumber(static_cast<uint32_t>(task_.run));
  for (const MinibatchSpan& span : task_.spans) {
    for (uint32_t i = 0; i < span.count; ++i) {
      run.minibatches.push_back(MinibatchIndex(span.first.value() + i));
    }
  }
  loop_ = std::make_unique<MinibatchLoop>(
      &group->session(), static_cast<LoopOwner*>(this),
      LoopWork{std::move(run), read.reader, read.records, std::move(metrics)});
  group_->session().EnterStep(work.token);
}

GroupStepImpl::GroupStepImpl(GroupImpl* group, sdk::TrainerTask task,
                             std::shared_ptr<StepTotals> sums)
    : group_(group),
      tables_(false),
      task_(std::move(task)),
      facts_(sums->facts),
      sums_(std::move(sums)),
      state_copied_(group->TakeStateCopied()) {}

GroupStepImpl::~GroupStepImpl() {
  // Nothing of a replay is to be committed.
  const bool replayed = replay() && over_;
  if (computes() && !committed_.has_value() && !replayed) Fail("the step was left without Commit");
}

void GroupStepImpl::Skip(MinibatchIndex minibatch) {
  // It counts as computed, like any other minibatch of the share.
  if (Start(minibatch) == Next::kRun) End(minibatch, 0, loop_->metrics());
}

LoopOwner::Next GroupStepImpl::Start(MinibatchIndex minibatch) {
  if (failed_ || !group_->StartMinibatch(task_, minibatch)) return Next::kEnd;
  current_ = minibatch;
  return Next::kRun;
}

void GroupStepImpl::Push(const MinibatchImpl& minibatch,
                         std::shared_ptr<const sdk::RowBatch> batch) {
  const StepWork& work = task_.work;
  const MinibatchIndex index = minibatch.index();
  group_->session().PushOfStep(
      {work.shard, index, work.token, RunNumber(static_cast<uint32_t>(task_.run)),
       work.work.first_step + index.value(), work.restore_epoch},
      std::move(batch));
}

void GroupStepImpl::End(MinibatchIndex minibatch, size_t records, const ShardMetrics& metrics) {
  current_.reset();
  group_->EndMinibatch(task_, minibatch, metrics);
  group_->session().EndStepMinibatch(records, evaluate());
}

void GroupStepImpl::Complete(ShardMetrics) {
  EndLoop();  // the group has the metrics since the End of the last minibatch
}

void GroupStepImpl::EndLoop() {
  if (std::exchange(over_, true)) return;
  current_.reset();
  group_->session().LeaveStep(task_.work.token);
  group_->EndLoop(task_);
}

void GroupStepImpl::FailRun(std::string reason) {
  failed_ = true;
  EndLoop();
  group_->FailStep(task_, std::move(reason), /*fatal=*/false);
}

void GroupStepImpl::Fail(std::string_view reason) {
  if (failed_ || committed_.has_value() || !computes()) return;
  if (reason.empty()) reason = "the trainer gave no reason";
  loop_->Fail(reason);  // does nothing if the loop is over
  if (!failed_) FailRun(fmt::format("shard {}: {}", loop_->id(), reason));
}

std::optional<MinibatchIndex> GroupStepImpl::MinibatchOf(std::string_view call) {
  const std::optional<MinibatchIndex> minibatch = current_;
  // Fail ends the minibatch, and the trainer may still be in it.
  if (!minibatch.has_value() && !failed_) {
    group_->ProgramError(fmt::format("GroupStep::{} outside of the loop over Minibatches()", call));
  } else if (minibatch.has_value() && evaluate()) {
    group_->ProgramError(fmt::format(
        "GroupStep::{} in an evaluation, which has no sums: check step.evaluate() before", call));
    return std::nullopt;
  }
  if (replay()) return std::nullopt;
  return minibatch;
}

void GroupStepImpl::OnAdded(const absl::Status& added) {
  if (absl::IsInvalidArgument(added)) return group_->ProgramError(std::string(Message(added)));
  if (absl::IsFailedPrecondition(added)) return group_->Fail(added);
  // The next minibatch does not begin. Several threads may be here, so nothing else changes.
  if (!added.ok()) {
    group_->FailStep(task_, fmt::format("shard {}: {}", loop_->id(), Message(added)), false);
  }
}

bool GroupStepImpl::IsThere(std::string_view call, const float* values, uint64_t elements) {
  if (values != nullptr || elements == 0) return true;
  group_->ProgramError(fmt::format("GroupStep::{} with a null pointer", call));
  return false;
}

void GroupStepImpl::Add(uint32_t bucket, std::span<const float> gradient) {
  if (!IsThere("Add", gradient.data(), gradient.size())) return;
  const std::optional<MinibatchIndex> minibatch = MinibatchOf("Add");
  if (minibatch.has_value()) OnAdded(group_->Add(task_, *minibatch, bucket, gradient));
}

void GroupStepImpl::AddDevice(uint32_t bucket, const float* gradient, uint64_t elements,
                              void* stream) {
  if (!IsThere("AddDevice", gradient, elements)) return;
  const std::optional<MinibatchIndex> minibatch = MinibatchOf("AddDevice");
  if (!minibatch.has_value()) return;
  OnAdded(group_->AddDevice(task_, *minibatch, bucket, gradient, elements, stream));
}

bool GroupStepImpl::Put(uint32_t bucket, std::span<const float> values, std::string_view what) {
  if (!IsThere("Put", values.data(), values.size())) return false;
  // A step to be applied has no loop.
  if (!computes() || replay()) return true;
  if (failed_) return false;
  if (!over_ || evaluate()) {
    group_->ProgramError(over_ ? "GroupStep::Put in an evaluation, which has no sums: check "
                                 "step.evaluate() before"
                               : "GroupStep::Put before the end of the loop over Minibatches()");
    return false;
  }
  if (committed_.has_value()) {
    group_->ProgramError("GroupStep::Put after Commit");
    return false;
  }
  if (!put_.insert(bucket).second) {
    group_->ProgramError("GroupStep::Put twice for one bucket: give one sum, after the loop");
    return false;
  }
  const absl::Status put = group_->Put(task_, bucket, values, what);
  if (absl::IsInvalidArgument(put)) group_->ProgramError(std::string(Message(put)));
  if (!put.ok()) Fail(Message(put));
  return put.ok();
}

bool GroupStepImpl::MayCommit() {
  if (!group_->trains_locally()) return true;
  group_->ProgramError("GroupStep::Commit of a step of DiLoCo or LocalSgd: use their Commit");
  return false;
}

bool GroupStepImpl::Commit(const std::function<void()>& apply) {
  if (applying_) {
    group_->ProgramError("GroupStep::Commit inside of what is given to Commit");
    return false;
  }
  if (committed_.has_value()) return *committed_;
  if (computes()) {
    if (!over_) Fail("the loop over the minibatches did not come to its end");
    committed_ = false;
    if (failed_ || replay()) return false;
    const absl::Status put = evaluate() ? absl::OkStatus() : group_->CheckPut(task_);
    if (!put.ok()) {
      group_->ProgramError(std::string(Message(put)));
      return false;
    }
    sdk::TrainerTask next = group_->AwaitTask();
    if (next.kind != sdk::TrainerTask::Kind::kApply || next.step != task_.step) {
      group_->PutBack(std::move(next));
      return false;
    }
    sums_ = group_->SumsOf(next);
    facts_.records = sums_->facts.records;
  }
  committed_ = true;
  Apply(apply);
  return true;
}

void GroupStepImpl::Apply(const std::function<void()>& apply) {
  applying_ = true;
  group_->EnterApply(true);
  MUSTER_FAILPOINT("group.before-apply");
  try {
    if (!evaluate() && apply) apply();
  } catch (...) {
    applying_ = false;
    group_->EnterApply(false);
    sums_.reset();
    group_->ApplyFailed();
    throw;
  }
  MUSTER_FAILPOINT("group.after-apply");
  applying_ = false;
  group_->EnterApply(false);
  group_->Applied(std::exchange(sums_, nullptr));
}

std::span<const float> GroupStepImpl::Sum(uint32_t bucket) const {
  const bool there = applying_ && bucket < sums_->buckets();
  if (there && sums_->FloatsOnDevice(bucket) == nullptr) return sums_->floats(bucket);
  group_->ProgramError(there ? "GroupStep::Sum of a bucket on the device: use DeviceSum"
                             : "GroupStep::Sum outside of what is given to Commit");
  return {};
}

const float* GroupStepImpl::DeviceSum(uint32_t bucket) const {
  const bool there = applying_ && bucket < sums_->buckets();
  if (there && sums_->FloatsOnDevice(bucket) != nullptr) {
    return reinterpret_cast<const float*>(sums_->FloatsOnDevice(bucket)->address());
  }
  group_->ProgramError(there ? "GroupStep::DeviceSum of a bucket that is not on the device: use Sum"
                             : "GroupStep::DeviceSum outside of what is given to Commit");
  return nullptr;
}

}  // namespace muster::internal
