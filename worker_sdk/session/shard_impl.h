#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/session.h"
#include "worker_sdk/session/minibatch_impl.h"
#include "worker_sdk/session/session_impl.h"

namespace muster::internal {

/// The loop over a member's minibatches of a step (GroupStepImpl), which has no lease. On the
/// loop's thread.
class StepLoop {
 public:
  virtual ~StepLoop() = default;
  /// False: members train with local steps, whose minibatches are not those of other members.
  virtual bool may_use_tables() const = 0;
  /// False: the loop ends.
  virtual bool Start(MinibatchIndex minibatch) = 0;
  /// The minibatch has run; `metrics` are those of all that have.
  virtual void End(MinibatchIndex minibatch, size_t records, const ShardMetrics& metrics) = 0;
  /// The loop has ended after its last minibatch.
  virtual void Complete() = 0;
  virtual void Fail(const sdk::ShardFailure& failure) = 0;
};

/// A shard in a loop's hands, from NextShard to its end: prepares minibatches ahead, hands them
/// out, and tells the session, or the step of a group, how the run ended. Belongs to the loop's
/// thread.
class ShardImpl {
 public:
  /// `session` must outlive it.
  ShardImpl(SessionImpl* session, SessionImpl::NextResult shard);
  /// Minibatches of a step: those that `shard` names, of which there is one at least. `metrics`: of
  /// those that have run before. `loop` must outlive it.
  ShardImpl(SessionImpl* session, StepLoop* loop, sdk::ShardRun shard, sdk::ShardReader* reader,
            std::shared_ptr<const sdk::ShardRecords> records, ShardMetrics metrics);
  /// Hands the shard back when its loop was left early.
  ~ShardImpl();
  ShardImpl(const ShardImpl&) = delete;
  ShardImpl& operator=(const ShardImpl&) = delete;

  /// Begins the loop; false when it has no minibatch to hand out (also when it began before).
  bool Begin(Prepare prepare);
  /// Leaves the current minibatch, committing it if the trainer has not; false at the end.
  bool Advance();
  Minibatch& current() { return window_.front().handle(); }
  void Fail(std::string_view reason);

  SessionImpl& session() const { return *session_; }
  /// The minibatches are those of a step of a group.
  bool of_step() const { return step_ != nullptr; }
  bool may_use_tables() const { return step_ == nullptr || step_->may_use_tables(); }
  /// Pushes the rows of a minibatch of a step.
  void PushOfStep(MinibatchIndex minibatch, std::shared_ptr<const sdk::RowBatch> batch);
  RunRef run() const { return {shard_.grant.token, shard_.run}; }
  const ShardWork& work() const { return shard_.grant.work; }
  const ShardId& shard_id() const { return shard_.grant.shard; }
  bool evaluate() const { return work().mode == DatasetMode::kEvaluate; }
  std::string_view header() const { return records_->header; }
  std::string id() const;
  /// The location of a record, by its position in running order; see ShardReader::LocationOf.
  std::string LocationOf(size_t position) const;
  ShardMetrics& metrics() { return metrics_; }
  /// The topic's records with their other fields; null: the dataset is no topic.
  const kafka::Records* topic() const { return records_->topic.get(); }
  /// The trainer cannot use the record at this position in running order.
  void AddRejected(size_t position, std::string_view reason);
  /// The run has ended: completed, failed, handed back.
  bool left() const { return left_; }

 private:
  bool MayPrepareMore() const;
  void PrepareAhead();
  bool StartFront();
  bool AdvanceLoop();
  uint32_t minibatches() const { return static_cast<uint32_t>(records_->minibatches.size() - 1); }
  /// Writes the rejected records. False: that failed, and the run has ended.
  bool WriteRejected();
  /// All minibatches have run, so the shard is done as soon as it is acknowledged.
  void Complete();
  /// Ends the loop's time. Idempotent.
  void EndLoop();

  /// Offsets of a topic without records, which no loop sees.
  void RunEmptyMinibatches();

  SessionImpl* session_;
  StepLoop* step_ = nullptr;
  sdk::ShardRun shard_;
  sdk::ShardReader* reader_;  // the session's
  std::shared_ptr<const sdk::ShardRecords> records_;
  ShardMetrics metrics_;
  std::vector<sdk::RejectedRecord> rejected_;  // for the dead-letter topic
  Prepare prepare_;
  uint32_t prepared_ = 0;
  // The current one first.
  std::deque<MinibatchImpl, sdk::PoolAllocator<MinibatchImpl>> window_;
  bool begun_ = false;
  bool left_ = false;
  bool in_loop_ = false;
};

}  // namespace muster::internal
