#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "master/core/core_options.h"
#include "master/core/done_details.h"
#include "master/core/durable_state.h"
#include "master/core/epochs/epoch_totals.h"
#include "master/core/first_metrics.h"
#include "master/core/pushed_parts.h"
#include "master/core/streams/stream_table.h"
#include "sharding/shard_queue.h"

namespace muster {

/// The queue of shards with its counts: done_seq, records, metrics merged exactly once, failures,
/// and the streams that feed it. Pure; not thread-safe.
class Ledger {
 public:
  static constexpr size_t kReasonsMax = 16;
  static constexpr size_t kReasonBytesMax = 1'024;
  /// About what an epoch of which something is DONE takes besides its shards, in all tables.
  static constexpr uint64_t kEpochBytes = 1'024;

  /// kFailedPrecondition if the journal has epochs that the plan no longer has.
  static absl::Status CheckFits(const std::vector<DatasetPlan>& plan, const DurableState& state);
  /// Requires CheckFits(plan, state).ok(). `metric_names`: as in CoreLimits.
  Ledger(std::vector<DatasetPlan> plan, const DurableState& state, size_t metric_names,
         Evaluation evaluation = Evaluation::kAtTheEnd);
  /// Its totals have pointers into it.
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  ShardQueue& queue() { return queue_; }
  const ShardQueue& queue() const { return queue_; }
  const std::vector<DatasetPlan>& plan() const { return plan_; }
  /// It evaluates or predicts: it changes no weights, so it is never replayed.
  bool IsEvaluate(const ShardId& shard) const {
    return plan_[shard.dataset.value()].mode != DatasetMode::kTrain;
  }
  /// For a shard of a stream: the most records that it can have; 0 if it is COMMITTED.
  uint32_t RecordsOf(const ShardId& shard) const;
  uint32_t MinibatchesOf(const ShardId& shard) const;
  const StreamTable& streams() const { return streams_; }
  /// The newest done_seq given; the largest one that is COMMITTED.
  DoneSeq done_seq() const { return done_seq_; }
  DoneSeq commit_seq() const { return commit_seq_; }

  /// leased -> DONE under the next done_seq. The metrics are those of this run, unless the shard
  /// was DONE before.
  void MarkDone(const ShardId& shard, LeaseToken token, const std::string& worker,
                const ShardMetrics& of_run);
  struct Committed {
    std::set<std::pair<DatasetId, EpochIndex>> epochs;
    /// Those of training, for each worker: they add up to the progress of the job.
    std::map<std::string, uint64_t> records;
    /// In the order in which they became DONE.
    std::vector<ShardId> shards;
  };
  /// DONE with seq <= `last` -> COMMITTED, at most `most`; merges their metrics.
  Committed CommitUpTo(DoneSeq last, size_t most);
  /// DONE with seq > `cut` -> TODO. Keeps their metrics: those of the next run do not count.
  std::vector<DoneShard> ReplayAfter(DoneSeq cut);

  // ---- of a synchronous group, whose DONE shards are steps ----

  /// The DONE shards up to this are in a checkpoint of the group.
  DoneSeq checkpointed() const { return checkpointed_; }
  void SetCheckpointed(DoneSeq last) { checkpointed_ = std::max(checkpointed_, last); }
  uint64_t done_after_checkpoint() const;
  const PushedParts& pushed() const { return pushed_; }
  /// Restored partitions may lack parts of this DONE shard; or no longer do, as of a new seq.
  void LoseParts(const DoneShard& done);
  void PartsPushedAgain(const DoneShard& done);
  /// A DONE shard that lacks parts: the oldest one.
  std::optional<DoneShard> FirstLacking() const;
  bool LacksParts(const ShardId& shard) const;

  /// Takes the result of a look at the topic of a stream.
  void TakeLook(DatasetId dataset, std::span<const PartitionLook> partition_looks, TimePoint now,
                WallTime wall);
  void SetStreamCluster(DatasetId dataset, std::string cluster) {
    streams_.SetCluster(dataset, std::move(cluster));
  }
  /// Cuts the ranges that are due while not too many are open. They become TODO, unless their
  /// records are lost. At its end the dataset is closed.
  std::vector<StreamTable::NewShard> CutStream(DatasetId dataset, TimePoint now);
  /// TODO or FAILED -> FAILED, whatever its failures so far, because its data are gone.
  void FailLost(const ShardId& shard, std::string_view reason);

  enum class Charged { kAlready, kYes, kFailed };
  /// Counts a failure of the trainer under lease `token` for a TODO shard, unless a failure of this
  /// or a newer lease was already counted. The `failures_max`th failure makes the shard FAILED.
  Charged ChargeTrainer(const ShardId& shard, LeaseToken token, std::string_view reason,
                        uint32_t failures_max);
  /// Counts a failure of the node while it ran the shard; it is no failure of the shard.
  void CountNodeFailure(const ShardId& shard);
  /// FAILED -> TODO with no failures.
  void Retry(const ShardId& shard);
  /// nullptr if the shard has had no failure.
  const FailureRecord* FindFailure(const ShardId& shard) const;
  const std::map<ShardId, FailureRecord>& failures() const { return failures_; }

  uint64_t RecordsCommitted(DatasetId dataset, EpochIndex epoch) const {
    return totals_.RecordsCommitted(dataset, epoch);
  }
  /// Of DONE and COMMITTED shards.
  uint64_t RecordsDone(DatasetId dataset, EpochIndex epoch) const {
    return totals_.RecordsDone(dataset, epoch);
  }
  /// Training records of the epochs after this one that are leased, DONE or COMMITTED, about.
  uint64_t RecordsBegunAfter(EpochIndex epoch) const;
  /// Metrics merged over the COMMITTED shards; null if there are none yet, or if the epoch was
  /// thinned out. The returned value never changes: because histograms are large, they are copied
  /// only when there is more to merge.
  std::shared_ptr<const ShardMetrics> Metrics(DatasetId dataset, EpochIndex epoch) const {
    return totals_.Metrics(dataset, epoch);
  }
  /// Which epochs are known, thinned out, or have too many metrics.
  const EpochTotals& totals() const { return totals_; }
  /// As EpochTotals::ThinOut.
  void ThinOut(size_t most, const std::set<EpochIndex>& needed) { totals_.ThinOut(most, needed); }
  /// The approximate memory of DONE shards and their epochs, and of FAILED shards with all reasons
  /// of failures.
  uint64_t done_bytes() const { return details_.bytes() + queue_.done().pages() * kEpochBytes; }
  uint64_t failure_bytes() const { return failed_.bytes; }
  /// FAILED shards, without those whose data are gone.
  uint64_t shards_failed_by_trainers() const { return failed_.by_trainers; }
  struct FailureTotals {
    uint64_t bytes = 0;
    uint64_t by_trainers = 0;
  };
  /// Rejected records of DONE and COMMITTED shards of the whole job.
  uint64_t rejected_records() const { return rejected_; }

  /// Appends what changed since the last call, except done_seq and commit_seq, which are in the
  /// meta record.
  void Collect(std::vector<Mutation>* mutations);

 private:
  void MergeCommitted(const ShardId& shard, const ShardMetrics& metrics, uint32_t records);
  /// Journals the state of a DONE shard anew.
  void WriteDone(const DoneShard& done);
  void DropFailures(const ShardId& shard);
  void AddReason(std::string_view reason, FailureRecord* record);
  /// Records of a shard that is done with these metrics.
  uint32_t RecordsTrained(const ShardId& shard, const ShardMetrics& metrics) const;

  std::vector<DatasetPlan> plan_;
  StreamTable streams_;
  ShardQueue queue_;
  DoneSeq done_seq_;
  DoneSeq commit_seq_;
  DoneSeq checkpointed_;
  PushedParts pushed_;
  /// Of queue_.done(), in its order.
  DoneDetails details_;
  FirstMetrics first_metrics_;
  EpochTotals totals_;
  std::map<ShardId, FailureRecord> failures_;
  uint64_t rejected_ = 0;
  FailureTotals failed_;
  /// Done and EraseDone, in the order in which they happened.
  std::vector<Mutation> pending_;
  std::set<ShardId> dirty_failures_;
};

}  // namespace muster
