#include "tests/sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "base/check.h"
#include "base/random.h"
#include "ps/engine/initializer.h"
#include "sharding/partition_of.h"
#include "tests/sim/group/group_model.h"
#include "tests/sim/machine/sim_topic.h"

namespace muster::sim {
namespace {

struct DatasetShape {
  const char* name;
  DatasetMode mode;
  uint64_t shards;
  uint32_t minibatches;
};
constexpr std::array<DatasetShape, 4> kShapes = {{{"a", DatasetMode::kTrain, 4, 3},
                                                  {"b", DatasetMode::kTrain, 3, 2},
                                                  {"test", DatasetMode::kEvaluate, 2, 2},
                                                  {"new", DatasetMode::kPredict, 3, 2}}};
constexpr uint32_t kMinibatchSize = 4;

/// What a record, or a shard, is said to have been predicted as; some fall into one bin.
double ScoreOf(uint64_t number) {
  return static_cast<double>(number % 16) / 16;
}

constexpr uint32_t kStreamMinibatchSize = 3, kStreamMinibatches = 2;
constexpr uint64_t kSparseKeys = 24, kLateKeys = 9;
/// Of the late table; no worker pushes it.
constexpr uint64_t kUntouchedKey = 1'000'000;

std::vector<TableSpec> Tables() {
  using Kind = InitializerSpec::Kind;
  std::vector<TableSpec> tables(4);
  tables[0] = {.name = "marks", .dim = 1, .optimizer = SumSpec{}};
  tables[1] = {.name = "sparse",
               .dim = 2,
               .optimizer = SumSpec{},
               .initializer = {.kind = Kind::kConstant, .a = 3}};
  tables[2] = {.name = "dense", .dim = 4, .shape = {2, 6}, .optimizer = SumSpec{}};
  tables[3] = {.name = "late",
               .dim = 1,
               .optimizer = SumSpec{},
               .initializer = {.kind = Kind::kUniform, .a = 1, .b = 2}};
  return tables;
}

/// `count` different keys below `bound`, chosen by `seed`, ascending.
std::vector<uint64_t> SomeKeys(uint64_t seed, size_t count, uint64_t bound) {
  Rng rng(seed);
  std::set<uint64_t> keys;
  while (keys.size() < count) keys.insert(rng.Below(bound));
  return {keys.begin(), keys.end()};
}

}  // namespace

const Workload& Workload::Of(uint32_t partitions, WorkloadKind kind) {
  constexpr size_t kKinds = static_cast<size_t>(WorkloadKind::kGroup) + 1;
  static std::array<std::unique_ptr<const Workload>, kKinds*(kPartitionsMax + 1)> made;
  MUSTER_CHECK(partitions >= kPartitionsMin && partitions <= kPartitionsMax);
  auto& workload = made[kKinds * partitions + static_cast<size_t>(kind)];
  if (workload == nullptr) workload.reset(new Workload(partitions, kind));
  return *workload;
}

Workload::Workload(uint32_t partitions, WorkloadKind kind)
    : partitions_(partitions),
      kind_(kind),
      tables_(Tables()),
      partition_parts_(partitions),
      marks_(kPartsMax),
      expected_(partitions) {
  uint32_t (*minibatches_of)(const ShardId&) = &Workload::MinibatchesOf;
  if (kind == WorkloadKind::kGroup) minibatches_of = &GroupMinibatchesOf;
  const std::vector<DatasetPlan> datasets = plan();
  for (uint32_t dataset = 0; dataset < datasets.size(); ++dataset) {
    if (datasets[dataset].mode != DatasetMode::kTrain || datasets[dataset].stream.has_value()) {
      continue;
    }
    AddShards(DatasetId(dataset), datasets[dataset].shards, minibatches_of);
  }
  if (kind == WorkloadKind::kTopic) AddRecords();
  MUSTER_CHECK(batches_.size() * partitions_ <= kPartsMax);
}

void Workload::AddShards(DatasetId dataset, uint64_t shards,
                         uint32_t (*minibatches_of)(const ShardId&)) {
  for (uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (uint64_t index = 0; index < shards; ++index) {
      const ShardId shard{dataset, EpochIndex(epoch), ShardIndex(index)};
      first_batch_[shard] = static_cast<uint32_t>(batches_.size());
      for (uint32_t m = 0; m < minibatches_of(shard); ++m) AddBatch(shard, m);
    }
  }
}

void Workload::AddRecords() {
  for (uint32_t partition = 0; partition < SimTopic::kPartitions; ++partition) {
    for (uint64_t offset = 0; offset < SimTopic::kOffsets; ++offset) {
      if (!SimTopic::IsRecord(partition, offset)) continue;
      record_batch_[{partition, offset}] = static_cast<uint32_t>(batches_.size());
      AddBatch({kStreamDataset, EpochIndex(0), ShardIndex(offset)}, partition);
    }
  }
}

void Workload::AddBatch(const ShardId& shard, uint32_t minibatch) {
  const uint64_t id = batches_.size();
  TrainBatch batch{shard, MinibatchIndex(minibatch), {}, {}};
  const auto add = [&](TableId table, std::vector<uint64_t> keys) {
    BatchRows rows{table, tables_[table.value() - 1].dim, std::move(keys), {}};
    for (const uint64_t key : rows.keys) {
      for (uint32_t column = 0; column < rows.dim; ++column) {
        rows.gradients.push_back(
            static_cast<float>(1 + HashWords(id, table.value(), key, column) % 3));
      }
    }
    batch.rows.push_back(std::move(rows));
  };
  add(kSparse, SomeKeys(HashWords(id, 1), 3, kSparseKeys));
  if (id % 3 == 0) add(kDense, {0, 1, 2});
  if (shard.epoch.value() > 0) add(kLate, SomeKeys(HashWords(id, 2), 2, kLateKeys));
  AddMarks(&batch);
  AddExpected(batch);
  if (!IsStream(shard)) shard_parts_[shard] |= batch.parts;
  batches_.push_back(std::move(batch));
}

void Workload::AddMarks(TrainBatch* batch) {
  const auto id = static_cast<uint32_t>(batches_.size());
  std::set<uint32_t> touched;
  for (const BatchRows& rows : batch->rows) {
    for (const uint64_t key : rows.keys) {
      touched.insert(PartitionOf(rows.table, key, partitions_).value());
    }
  }
  BatchRows marks{kMarks, 1, {}, {}};
  for (const uint32_t partition : touched) {
    uint64_t key = uint64_t{id} * 100'000;
    while (PartitionOf(kMarks, key, partitions_).value() != partition) ++key;
    const uint32_t part = id * partitions_ + partition;
    marks.keys.push_back(key);
    marks.gradients.push_back(1);
    marks_[part] = key;
    mark_parts_[key] = part;
    batch->parts.set(part);
    partition_parts_[partition].set(part);
  }
  batch->rows.insert(batch->rows.begin(), std::move(marks));
}

void Workload::AddExpected(const TrainBatch& batch) {
  for (const BatchRows& rows : batch.rows) {
    for (size_t i = 0; i < rows.keys.size(); ++i) {
      const uint64_t key = rows.keys[i];
      Rows& all = expected_[PartitionOf(rows.table, key, partitions_).value()];
      std::vector<float>& row = all[{rows.table, key}];
      if (row.empty()) row = Initial(rows.table, key);
      for (uint32_t column = 0; column < rows.dim; ++column) {
        row[column] += rows.gradients[i * rows.dim + column];
      }
    }
  }
}

std::vector<float> Workload::Initial(TableId table, uint64_t key) const {
  TableSpec spec = tables_[table.value() - 1];
  spec.id = table;
  std::vector<float> row(spec.dim);
  ps::InitialRow(spec, kJobSeed, key, row);
  return row;
}

std::vector<DatasetPlan> Workload::plan() const {
  if (kind_ == WorkloadKind::kGroup) return GroupPlan();
  std::vector<DatasetPlan> plan;
  for (uint32_t i = 0; i < kShapes.size(); ++i) {
    DatasetPlan dataset{
        kShapes[i].name, kShapes[i].mode, EpochsOf(DatasetId(i)), kShapes[i].shards, 0,
        kMinibatchSize,  nullptr};
    dataset.size_of = [i](EpochIndex epoch, ShardIndex index) {
      const ShardId shard{DatasetId(i), epoch, index};
      return ShardSize{RecordsOf(shard), MinibatchesOf(shard)};
    };
    for (uint64_t index = 0; index < dataset.shards; ++index) {
      dataset.records += dataset.size_of(EpochIndex(0), ShardIndex(index)).records;
    }
    plan.push_back(std::move(dataset));
  }
  if (kind_ != WorkloadKind::kTopic) return plan;
  DatasetPlan topic{"topic", DatasetMode::kTrain, 1, 0, 0, kStreamMinibatchSize, nullptr};
  topic.stream = StreamPlan{"topic",
                            {.minibatch_size = kStreamMinibatchSize,
                             .minibatches_per_shard = kStreamMinibatches,
                             .max_delay = std::chrono::milliseconds(300)},
                            /*open_ranges_max=*/3};
  plan.push_back(std::move(topic));
  return plan;
}

uint32_t Workload::MinibatchesOf(const StreamWork& work) {
  return StreamMinibatches(muster::OffsetsOf(work.ranges), kStreamMinibatchSize);
}

ShardMetrics Workload::MetricsOf(const StreamWork& work) {
  ShardMetrics metrics;
  double offsets = 0;
  for (const OffsetRange& range : work.ranges) {
    for (uint64_t offset = range.begin; offset < range.end; ++offset) {
      if (!SimTopic::IsRecord(range.partition.value(), offset)) continue;
      ++metrics.records;
      offsets += static_cast<double>(offset);
      AddScore(&metrics.aucs["auc"], ScoreOf(offset), offset % 2 == 0);
    }
  }
  metrics.means["offset"] = {offsets, static_cast<double>(metrics.records)};
  return metrics;
}

StreamWork Workload::OffsetsOf(const StreamWork& work, MinibatchIndex minibatch) {
  const uint64_t offsets = muster::OffsetsOf(work.ranges), parts = MinibatchesOf(work);
  const uint64_t k = minibatch.value();
  return {work.topic,
          PartOf(work.ranges, BeginOfPart(k, parts, offsets), BeginOfPart(k + 1, parts, offsets))};
}

TrainBatch Workload::BatchOf(const StreamWork& work, const ShardId& shard,
                             MinibatchIndex minibatch) const {
  TrainBatch sum{shard, minibatch, {}, {}};
  std::map<TableId, std::map<uint64_t, std::vector<float>>> rows;
  for (const uint32_t record : RecordsIn(OffsetsOf(work, minibatch))) {
    const TrainBatch& batch = batches_[record];
    sum.parts |= batch.parts;
    for (const BatchRows& from : batch.rows) {
      for (size_t i = 0; i < from.keys.size(); ++i) {
        std::vector<float>& row = rows[from.table][from.keys[i]];
        row.resize(from.dim);
        for (uint32_t column = 0; column < from.dim; ++column) {
          row[column] += from.gradients[i * from.dim + column];
        }
      }
    }
  }
  for (const auto& [table, keys] : rows) {
    BatchRows& to = sum.rows.emplace_back(BatchRows{table, tables_[table.value() - 1].dim, {}, {}});
    for (const auto& [key, row] : keys) {
      to.keys.push_back(key);
      to.gradients.insert(to.gradients.end(), row.begin(), row.end());
    }
  }
  return sum;
}

std::vector<BatchRows> Workload::PullOf(const TrainBatch& batch) const {
  std::vector<BatchRows> pull;
  for (const BatchRows& rows : batch.rows) {
    if (rows.table != kMarks) pull.push_back({rows.table, rows.dim, rows.keys, {}});
  }
  return pull;
}

std::vector<uint32_t> Workload::RecordsIn(const StreamWork& work) const {
  std::vector<uint32_t> records;
  for (const OffsetRange& range : work.ranges) {
    auto record = record_batch_.lower_bound({range.partition.value(), range.begin});
    const auto end = record_batch_.lower_bound({range.partition.value(), range.end});
    for (; record != end; ++record) records.push_back(record->second);
  }
  return records;
}

PartSet Workload::PartsOf(const StreamWork& work) const {
  PartSet parts;
  for (const uint32_t record : RecordsIn(work)) parts |= batches_[record].parts;
  return parts;
}

uint32_t Workload::MinibatchesOf(const ShardId& shard) {
  return kShapes[shard.dataset.value()].minibatches;
}

uint32_t Workload::RecordsOf(const ShardId& shard) {
  const DatasetShape& shape = kShapes[shard.dataset.value()];
  // The last shard is short by a record.
  return shape.minibatches * kMinibatchSize - (shard.index.value() + 1 == shape.shards ? 1 : 0);
}

ShardMetrics Workload::MetricsOf(const ShardId& shard) {
  ShardMetrics metrics;
  metrics.records = RecordsOf(shard);
  metrics.rejected_records = shard.index.value() % 2;
  metrics.means["loss"] = {static_cast<double>(3 + shard.index.value()),
                           static_cast<double>(metrics.records)};
  AddScore(&metrics.aucs["auc"], ScoreOf(shard.index.value()), shard.index.value() % 3 == 0);
  return metrics;
}

ShardMetrics Workload::MetricsOfEpoch(DatasetId dataset, EpochIndex epoch) {
  ShardMetrics all;
  for (uint64_t index = 0; index < kShapes[dataset.value()].shards; ++index) {
    Merge(&all, MetricsOf({dataset, epoch, ShardIndex(index)}));
  }
  return all;
}

const TrainBatch& Workload::BatchOf(const ShardId& shard, MinibatchIndex minibatch) const {
  return batches_[first_batch_.at(shard) + minibatch.value()];
}

std::vector<BatchRows> Workload::PullOf(const ShardId& shard, MinibatchIndex minibatch) const {
  std::vector<BatchRows> pull;
  if (IsPredict(shard)) {
    pull.push_back({kSparse, 2, SomeKeys(0, kSparseKeys, kSparseKeys), {}});
  } else if (!IsEvaluate(shard)) {
    // Rows that were pulled show that their partitions serve; some trainers only push.
    if ((first_batch_.at(shard) + minibatch.value()) % 2 == 1) return pull;
    for (const BatchRows& rows : BatchOf(shard, minibatch).rows) {
      if (rows.table != kMarks) pull.push_back({rows.table, rows.dim, rows.keys, {}});
    }
  } else {
    pull.push_back({kSparse, 2, SomeKeys(minibatch.value(), 4, kSparseKeys), {}});
    if (shard.epoch.value() > 0) pull.push_back({kLate, 1, {0, 5}, {}});
  }
  if (pull.back().table == kLate) pull.back().keys.push_back(kUntouchedKey);
  return pull;
}

std::string Workload::NameOf(uint32_t part) const {
  const TrainBatch& batch = batches_[part / partitions_];
  if (IsStream(batch.shard)) {
    return fmt::format("offset {} of topic partition {}, partition {}", batch.shard.index.value(),
                       batch.minibatch.value(), part % partitions_);
  }
  return fmt::format("shard {} minibatch {} partition {}", ToString(batch.shard),
                     batch.minibatch.value(), part % partitions_);
}

}  // namespace muster::sim
