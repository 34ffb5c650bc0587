#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "worker_sdk/member/group_impl.h"
#include "worker_sdk/session/minibatch_loop.h"

namespace muster::internal {

/// A step in the trainer's hands: see GroupStep. If this member computes minibatches of it, the
/// step owns the loop over them. Belongs to the trainer's thread, apart from Add.
class GroupStepImpl final : private LoopOwner {
 public:
  /// A step to compute. `metrics`: of the minibatches of the run that have been computed before.
  GroupStepImpl(GroupImpl* group, sdk::TrainerTask task, const StepRecords& read,
                ShardMetrics metrics);
  /// A step that has happened, and is to be applied.
  GroupStepImpl(GroupImpl* group, sdk::TrainerTask task, std::shared_ptr<StepTotals> sums);
  /// Without Commit, it has failed.
  ~GroupStepImpl() override;

  uint64_t step() const { return task_.step.value(); }
  uint32_t epoch() const { return static_cast<uint32_t>(facts_.epoch); }
  bool evaluate() const { return facts_.evaluate != 0; }
  bool replay() const { return task_.work.replay; }
  uint64_t records() const { return facts_.records; }
  /// The loop over the minibatches; null: there are none.
  MinibatchLoop* loop() const { return loop_.get(); }
  bool state_copied() const { return state_copied_; }
  void Add(uint32_t bucket, std::span<const float> gradient);
  void AddDevice(uint32_t bucket, const float* gradient, uint64_t elements, void* stream);
  /// It has minibatches, and so a run.
  bool computes() const { return loop_ != nullptr; }
  sdk::StepRunNumber run() const { return task_.run; }
  /// See GroupStep::Put; false: the step has failed. Also of the buckets of local steps, which get
  /// the values of all minibatches of the run that are over. `what`: as of OwnGradients::Put.
  bool Put(uint32_t bucket, std::span<const float> values, std::string_view what = {});
  /// `apply` may be empty.
  bool Commit(const std::function<void()>& apply);
  /// False: the trainer may not call it itself, and the session has failed.
  bool MayCommit();
  std::span<const float> Sum(uint32_t bucket) const;
  const float* DeviceSum(uint32_t bucket) const;
  void Fail(std::string_view reason);

 private:
  void Apply(const std::function<void()>& apply);
  /// Of the call of the trainer: where its gradient belongs. Nothing: it is not wanted.
  std::optional<MinibatchIndex> MinibatchOf(std::string_view call);
  void OnAdded(const absl::Status& added);
  /// False: the caller gave a null pointer, and the session has failed.
  bool IsThere(std::string_view call, const float* values, uint64_t elements);

  bool may_use_tables() const override { return tables_; }
  void Skip(MinibatchIndex minibatch) override;
  Next Start(MinibatchIndex minibatch) override;
  bool PushesNothing(const MinibatchImpl&) override { return false; }
  void Push(const MinibatchImpl& minibatch, std::shared_ptr<const sdk::RowBatch> batch) override;
  void End(MinibatchIndex minibatch, size_t records, const ShardMetrics& metrics) override;
  void Complete(ShardMetrics metrics) override;
  void FailRun(std::string reason) override;
  void HandBack(std::string reason) override { FailRun(std::move(reason)); }
  /// The loop is over, and the others may know. Idempotent.
  void EndLoop();

  GroupImpl* const group_;
  const bool tables_;
  sdk::TrainerTask task_;
  StepFacts facts_;
  std::shared_ptr<StepTotals> sums_;  // while it can be applied
  std::optional<MinibatchIndex> current_;
  const bool state_copied_;
  bool over_ = false;  // the loop
  bool failed_ = false;
  bool applying_ = false;
  std::optional<bool> committed_;
  std::set<uint32_t> put_;  // buckets
  std::unique_ptr<MinibatchLoop> loop_;
};

}  // namespace muster::internal
