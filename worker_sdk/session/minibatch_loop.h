#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "muster/session.h"
#include "worker_sdk/core/shard_output.h"
#include "worker_sdk/core/worker_core.h"
#include "worker_sdk/session/loop_owner.h"
#include "worker_sdk/session/loop_session.h"
#include "worker_sdk/session/minibatch_impl.h"

namespace muster::internal {

/// What a loop runs.
struct LoopWork {
  sdk::ShardRun shard;
  sdk::ShardReader* reader = nullptr;  // the session's
  std::shared_ptr<const sdk::ShardRecords> records;
  ShardMetrics metrics{};  // of minibatches of the run that another loop has run before
};

/// A loop over minibatches, as the trainer sees it (MinibatchRange): prepares minibatches ahead,
/// hands them out one by one, and tells its owner what becomes of them. Runs at most once. Belongs
/// to the loop's thread.
class MinibatchLoop {
 public:
  /// `owner` owns the loop. `session` outlives both.
  MinibatchLoop(LoopSession* session, LoopOwner* owner, LoopWork work);
  ~MinibatchLoop() { Close(); }
  MinibatchLoop(const MinibatchLoop&) = delete;
  MinibatchLoop& operator=(const MinibatchLoop&) = delete;

  /// Begins the loop. False: it has no minibatch to hand out, or it began before.
  bool Begin(Prepare prepare);
  /// Goes on to the next minibatch, and commits the current one if the trainer has not. False: the
  /// loop has ended.
  bool Advance();
  Minibatch& current() { return window_.front().handle(); }
  /// The trainer fails the run. Does nothing if the loop has ended.
  void Fail(std::string_view reason);
  /// Ends the trainer's stay in the loop, and cancels the pulls under way. Idempotent.
  void Close();

  LoopSession& session() const { return *session_; }
  /// See LoopSession. The loop remembers the table, so that its minibatches need no lock for it.
  const TableSpec* FindTable(TableId id);
  LoopOwner& owner() const { return *owner_; }
  RunRef run() const { return {shard_.grant.token, shard_.run}; }
  const ShardWork& work() const { return shard_.grant.work; }
  const ShardId& shard_id() const { return shard_.grant.shard; }
  /// The run changes no weights.
  bool evaluate() const { return work().mode != DatasetMode::kTrain; }
  bool predict() const { return work().mode == DatasetMode::kPredict; }
  const sdk::ShardRecords& records() const { return *records_; }
  const std::shared_ptr<const sdk::ShardRecords>& shared_records() const { return records_; }
  /// "dataset/epoch/index", for messages.
  std::string id() const;
  /// The location of a record, by its position in running order; see ShardReader::LocationOf.
  std::string LocationOf(size_t position) const;
  ShardMetrics& metrics() { return metrics_; }
  /// Of a predict dataset.
  sdk::ShardOutput& output() { return output_; }
  /// The topic's records with their other fields; null: the dataset is no topic.
  const sdk::TopicRecords* topic() const { return records_->topic.get(); }
  /// The trainer cannot use the record at this position in running order.
  void AddRejected(size_t position, std::string_view reason);
  /// The owner knows how the loop has ended.
  bool left() const { return left_; }

 private:
  uint32_t minibatches() const { return static_cast<uint32_t>(records_->minibatches.size() - 1); }
  size_t RecordsOf(uint32_t minibatch) const;
  /// Tells the owner of minibatches without records: a topic may have none for some offsets.
  void SkipEmpty();
  bool MayPrepareMore() const;
  void PrepareAhead();
  bool StartFront();
  bool AdvanceLoop();
  /// Writes what the run leaves behind: rejected records, outputs. False: that failed, and the run
  /// has ended.
  bool WriteResults();
  /// `what` could not be written. The shard is not to blame if its place is away.
  void FailWriting(const absl::Status& status, std::string_view what);
  void Complete();
  /// Ends the loop's time. Idempotent.
  void EndLoop();

  LoopSession* const session_;
  LoopOwner* const owner_;
  const sdk::ShardRun shard_;
  sdk::ShardReader* const reader_;
  const std::shared_ptr<const sdk::ShardRecords> records_;
  ShardMetrics metrics_;
  std::vector<const TableSpec*> tables_;       // by id, of those that were asked for
  std::vector<sdk::RejectedRecord> rejected_;  // for the dead-letter topic
  sdk::ShardOutput output_;
  Prepare prepare_;
  uint32_t prepared_ = 0;
  // The current one first.
  std::deque<MinibatchImpl, sdk::PoolAllocator<MinibatchImpl>> window_;
  bool begun_ = false;
  bool left_ = false;
  bool in_loop_ = false;
};

}  // namespace muster::internal
