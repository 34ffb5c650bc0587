#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/words/types.h"
#include "master/core/core_options.h"
#include "proto/messages/control.h"
#include "proto/messages/metrics.h"
#include "proto/messages/table_spec.h"
#include "worker_sdk/core/row_plan.h"

namespace muster::sim {

/// What a job trains from: files, files and a topic, or the datasets of a group.
enum class WorkloadKind : uint8_t { kFiles, kTopic, kGroup };

inline constexpr uint64_t kJobSeed = 7;
inline constexpr DatasetId kEvaluateDataset{2}, kPredictDataset{3}, kStreamDataset{4};
inline constexpr TableId kMarks{1}, kSparse{2}, kDense{3}, kLate{4};
/// Room for one bit per part: minibatches times partitions.
inline constexpr size_t kPartsMax = 640;
using PartSet = std::bitset<kPartsMax>;

/// Rows of one table in one minibatch.
struct BatchRows {
  TableId table;
  uint32_t dim = 0;
  std::vector<uint64_t> keys;
  std::vector<float> gradients;  // [keys.size(), dim] row-major, small integers
};
/// A row that a pull has brought.
struct SeenRow {
  TableId table;
  uint64_t key = 0;
  std::vector<float> values;
};
struct TrainBatch {
  ShardId shard;
  MinibatchIndex minibatch;
  std::vector<BatchRows> rows;  // tables ascending; the marks are among them
  PartSet parts;
};

/// What the simulated job trains: two train datasets of two epochs, an evaluate and a predict
/// dataset, in some seeds a stream, three tables from the start and one that comes late. All of it
/// is a pure function of the number of partitions, with optimizer Sum and whole gradients, so that
/// the end is known. Every minibatch has a row of its own, its *mark*, in every partition that it
/// touches: a mark is 1 if the part took effect once. How a stream is cut is not known beforehand;
/// so every record of it is what a minibatch is elsewhere, and its minibatches are sums of those.
class Workload {
 public:
  static constexpr uint32_t kPartitionsMin = 4, kPartitionsMax = 8, kEpochs = 2;

  /// Made once for each.
  static const Workload& Of(uint32_t partitions, WorkloadKind kind);

  std::vector<DatasetPlan> plan() const;
  const std::vector<TableSpec>& tables() const { return tables_; }  // without ids, in their order
  uint32_t partitions() const { return partitions_; }
  /// Epochs of a dataset that the job has.
  static uint32_t EpochsOf(DatasetId dataset) {
    return dataset == kStreamDataset || dataset == kPredictDataset ? 1 : kEpochs;
  }

  static bool IsEvaluate(const ShardId& shard) { return shard.dataset == kEvaluateDataset; }
  static bool IsPredict(const ShardId& shard) { return shard.dataset == kPredictDataset; }
  static bool Trains(const ShardId& shard) { return !IsEvaluate(shard) && !IsPredict(shard); }
  static bool IsStream(const ShardId& shard) { return shard.dataset == kStreamDataset; }
  // Of shards of files:
  static uint32_t MinibatchesOf(const ShardId& shard);
  static uint32_t RecordsOf(const ShardId& shard);
  /// What the trainer reports with this shard.
  static ShardMetrics MetricsOf(const ShardId& shard);
  /// Of a whole epoch of a dataset.
  static ShardMetrics MetricsOfEpoch(DatasetId dataset, EpochIndex epoch);

  const TrainBatch& BatchOf(const ShardId& shard, MinibatchIndex minibatch) const;
  /// Rows to look at before computing, perhaps none; of a training minibatch, or of an evaluate or
  /// a predict one.
  std::vector<BatchRows> PullOf(const ShardId& shard, MinibatchIndex minibatch) const;
  /// All parts of a shard.
  const PartSet& PartsOf(const ShardId& shard) const { return shard_parts_.at(shard); }
  // Of shards of the stream:
  static uint32_t MinibatchesOf(const StreamWork& work);
  static ShardMetrics MetricsOf(const StreamWork& work);
  /// The sum of the minibatch's records; no rows when it has none.
  TrainBatch BatchOf(const StreamWork& work, const ShardId& shard, MinibatchIndex minibatch) const;
  std::vector<BatchRows> PullOf(const TrainBatch& batch) const;
  PartSet PartsOf(const StreamWork& work) const;
  /// The offsets of a minibatch.
  static StreamWork OffsetsOf(const StreamWork& work, MinibatchIndex minibatch);
  const std::vector<TrainBatch>& batches() const { return batches_; }

  /// The part that a mark's key stands for.
  uint32_t PartOfMark(uint64_t key) const { return mark_parts_.at(key); }
  uint64_t MarkOf(uint32_t part) const { return marks_[part]; }
  /// All parts that lie in a partition.
  const PartSet& PartsIn(PartitionId partition) const {
    return partition_parts_[partition.value()];
  }
  std::string NameOf(uint32_t part) const;

  /// The end state: rows by table and key, and what each must be.
  using Rows = std::map<std::pair<TableId, uint64_t>, std::vector<float>>;
  const Rows& expected(PartitionId partition) const { return expected_[partition.value()]; }
  /// The value of a row before any push.
  std::vector<float> Initial(TableId table, uint64_t key) const;

 private:
  Workload(uint32_t partitions, WorkloadKind kind);
  /// The positions in batches_ of the records of some offsets.
  std::vector<uint32_t> RecordsIn(const StreamWork& work) const;
  void AddShards(DatasetId dataset, uint64_t shards, uint32_t (*minibatches_of)(const ShardId&));
  void AddRecords();
  void AddBatch(const ShardId& shard, uint32_t minibatch);
  void AddMarks(TrainBatch* batch);
  void AddExpected(const TrainBatch& batch);

  const uint32_t partitions_;
  const WorkloadKind kind_;
  std::vector<TableSpec> tables_;
  std::vector<TrainBatch> batches_;
  std::map<ShardId, uint32_t> first_batch_;
  /// By partition and offset of the topic.
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> record_batch_;
  std::map<ShardId, PartSet> shard_parts_;
  std::vector<PartSet> partition_parts_;
  std::vector<uint64_t> marks_;  // key by part, where the part exists
  std::map<uint64_t, uint32_t> mark_parts_;
  std::vector<Rows> expected_;
};

}  // namespace muster::sim
