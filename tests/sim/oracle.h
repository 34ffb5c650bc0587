#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "master/core/durable_state.h"
#include "master/core/master_core.h"
#include "proto/messages/control.h"
#include "ps/engine/partition.h"
#include "tests/sim/machine/sim_disk.h"
#include "tests/sim/workload.h"

namespace muster::sim {

/// What the record says of epochs: which shards of each are COMMITTED.
std::vector<EpochRecord> EpochsIn(const Mutation& mutation, const std::vector<DatasetPlan>& plan);

/// The judge: checks the invariants (README.md lists them) with its own records, separate from
/// those of the code under test. Keeps the first violation.
class Oracle {
 public:
  Oracle(const Workload* workload, const SimDisk* disk)
      : workload_(workload), disk_(disk), chains_(workload->partitions()) {}

  /// `kind` is one or two words, by which the minimiser recognises the same failure.
  void Fail(std::string kind, std::string text);
  bool failed() const { return !kind_.empty(); }
  const std::string& kind() const { return kind_; }
  const std::string& text() const { return text_; }

  // ---- the servers ----
  /// The partition as a server process has it after it took a part, and said OK or not.
  void OnPart(const ps::Partition& partition, const ShardId& shard, MinibatchIndex minibatch,
              bool ok);
  /// A server process serves a partition that it has just built from files with these marks.
  void OnBuilt(const ps::Partition& partition, const SimDisk::Marks& marks);
  /// A server process reports what it serves, and which of its snapshots it knows to be accepted.
  void OnOwned(uint64_t process, const OwnedPartition& owned);

  /// Rows of a table in a partition, under one owner epoch.
  struct VersionName {
    PartitionId partition;
    OwnerEpoch epoch;
    TableId table;
    uint64_t version = 0;
    friend auto operator<=>(const VersionName&, const VersionName&) = default;
  };
  /// A server process has these rows under this version.
  void OnVersion(const VersionName& name, std::vector<float> rows);

  // ---- the master ----
  /// The journal holds these, too; `state` is all of it.
  void OnDurable(std::span<const Mutation> mutations, const DurableState& state);
  /// The same of a job without tables.
  void OnDurableWithoutServers(std::span<const Mutation> mutations);
  /// Shards of a step are DONE; `current` shows the partition as its owner has it, null when the
  /// owner has not built it yet.
  using Current = std::function<const ps::Partition*(PartitionId)>;
  void OnDone(const DoneRecord& record, const Current& current);
  /// An answer leaves: everything from which it was computed must be durable. `idle`: every batch
  /// of the journal is durable.
  void OnAnswer(const MasterCore& core, const DurableState& state, bool idle);
  /// `core` has just given it.
  void OnGrant(const std::string& worker, uint64_t incarnation, const ShardGrant& grant,
               const MasterCore& core);
  /// A trainer really failed here, under this lease.
  void OnTrainerFailed(const ShardId& shard, LeaseToken token) { failures_[shard].insert(token); }
  /// A trainer left its shard before the end here.
  void OnTrainerLeft(const ShardId& shard, LeaseToken token) { left_[shard].insert(token); }

  /// The master reports that everything before `offset` is COMMITTED.
  void OnStreamCommitted(TopicPartition partition, uint64_t offset);

  // ---- the workers ----
  /// A worker has been granted a range of the stream.
  void OnStreamShard(const ShardId& shard, const StreamWork& work);
  void OnRows(const BatchRows& wanted, size_t key, std::span<const float> row);
  /// A worker publishes what it computed from these rows.
  void OnPredicted(const ShardId& shard, const std::vector<SeenRow>& seen);
  /// A pull has brought these rows as that version, though it began when `asked` was the epoch.
  void OnHeld(const VersionName& name, OwnerEpoch asked, const std::vector<float>& rows);

  // ---- the end ----
  void OnEnd(const MasterCore& core, const DurableState& state, const Current& current);
  /// The rows alone: every minibatch took effect once, at the owners and in the snapshots.
  void CheckTablesAtEnd(const MasterCore& core, const Current& current);

 private:
  std::map<VersionName, std::vector<float>> versions_;
  struct Chain {
    Manifest manifest;
    PartSet parts;
  };
  float MarkIn(const ps::Partition& partition, uint32_t part) const;
  /// All parts of a shard, or of one of its minibatches.
  PartSet PartsOf(const ShardId& shard);
  PartSet PartsOf(const ShardId& shard, MinibatchIndex minibatch);
  /// The training that an evaluation pass is to judge is over.
  void CheckTrainedFor(EpochIndex pass, const MasterCore& core);
  /// The epoch before is evaluated, unless the job lets evaluations overlap.
  void CheckEvaluatedBefore(EpochIndex epoch, const MasterCore& core);
  void CheckStreamShard(const StreamShardRecord& record);
  void CheckEpochAtEnd(DatasetId dataset, EpochIndex epoch, const DurableState& state);
  void CheckThinned(const WholeEpochsRecord& whole, const ShardMetrics& expected);
  void CheckMeta(const MetaRecord& meta);
  void CheckDoneSeq(const DoneRecord& record);
  void CheckEpoch(const EpochRecord& record);
  /// Every predict shard has outputs.
  void CheckPredicted();
  /// Shards of an evaluation pass are COMMITTED: so is all that it judges.
  void CheckEvaluated(EpochIndex pass);
  void CheckPartition(const PartitionRecord& record);
  void CheckFailures(const FailureRecord& record);
  /// Weights that are kept have exactly what the epochs up to theirs have pushed.
  void CheckKept(const KeptRecord& record);
  void CheckCovered(PartitionId partition, const DurableState& state);
  void CheckMissing(const PartSet& missing, PartitionId partition, const std::string& what);
  void CheckRows(const ps::Partition& partition, const std::string& what);

  const Workload* const workload_;
  const SimDisk* const disk_;
  std::string kind_, text_;
  std::vector<Chain> chains_;
  PartSet committed_;
  PartSet lost_;  // at any time: told as COMMITTED or lost
  std::map<std::pair<DatasetId, EpochIndex>, IntervalSet> committed_shards_;
  MetaRecord meta_;
  DoneSeq newest_done_;
  std::map<DoneSeq, ShardId> done_;
  std::map<std::pair<PartitionId, OwnerEpoch>, std::pair<ServerId, ServerIncarnation>> owners_;
  std::map<std::pair<PartitionId, OwnerEpoch>, uint64_t> serving_;
  std::map<PartitionId, OwnerEpoch> epochs_;
  std::set<std::pair<PartitionId, SnapshotNumber>> accepted_;
  struct Granted {
    ShardId shard;
    std::string worker;
    uint64_t incarnation = 0;
  };
  std::map<LeaseToken, Granted> grants_;
  /// Under which leases trainers failed, since the shard was last tried again after FAILED.
  std::map<ShardId, std::set<LeaseToken>> failures_;
  /// As above: where they left shards.
  std::map<ShardId, std::set<LeaseToken>> left_;
  std::set<ShardId> failed_;
  std::set<EpochIndex> failed_epochs_;  // at any time
  std::set<ShardId> predicted_;         // with outputs
  /// Of the stream, as the journal has had them, and where the next one begins.
  std::map<ShardId, StreamWork> stream_shards_;
  std::map<TopicPartition, uint64_t> cut_;
};

}  // namespace muster::sim
