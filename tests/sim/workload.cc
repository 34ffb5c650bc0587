#include "tests/sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "base/check.h"
#include "base/random.h"
#include "ps/engine/initializer.h"
#include "sharding/partition_map.h"

namespace muster::sim {
namespace {

struct DatasetShape {
  const char* name;
  DatasetMode mode;
  uint64_t shards;
  uint32_t minibatches;
};
constexpr std::array<DatasetShape, 3> kShapes = {{{"a", DatasetMode::kTrain, 4, 3},
                                                  {"b", DatasetMode::kTrain, 3, 2},
                                                  {"test", DatasetMode::kEvaluate, 2, 2}}};
constexpr uint32_t kMinibatchSize = 4;
constexpr uint64_t kSparseKeys = 24, kLateKeys = 9;
/// Of the late table; nobody pushes it.
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

const Workload& Workload::Of(uint32_t partitions) {
  static std::array<std::unique_ptr<const Workload>, kPartitionsMax + 1> made;
  MUSTER_CHECK(partitions >= kPartitionsMin && partitions <= kPartitionsMax);
  if (made[partitions] == nullptr) made[partitions].reset(new Workload(partitions));
  return *made[partitions];
}

Workload::Workload(uint32_t partitions)
    : partitions_(partitions),
      tables_(Tables()),
      partition_parts_(partitions),
      marks_(kPartsMax),
      expected_(partitions) {
  for (uint32_t dataset = 0; dataset < kShapes.size(); ++dataset) {
    if (kShapes[dataset].mode == DatasetMode::kEvaluate) continue;
    for (uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
      for (uint64_t index = 0; index < kShapes[dataset].shards; ++index) {
        const ShardId shard{DatasetId(dataset), EpochIndex(epoch), ShardIndex(index)};
        first_batch_[shard] = static_cast<uint32_t>(batches_.size());
        for (uint32_t m = 0; m < MinibatchesOf(shard); ++m) AddBatch(shard, m);
      }
    }
  }
  MUSTER_CHECK(batches_.size() * partitions_ <= kPartsMax);
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
  shard_parts_[shard] |= batch.parts;
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
  std::vector<DatasetPlan> plan;
  for (uint32_t i = 0; i < kShapes.size(); ++i) {
    DatasetPlan dataset{kShapes[i].name, kShapes[i].mode, kEpochs, kShapes[i].shards, 0,
                        kMinibatchSize,  nullptr};
    dataset.records_of = [i](EpochIndex epoch, ShardIndex index) {
      return RecordsOf({DatasetId(i), epoch, index});
    };
    for (uint64_t index = 0; index < dataset.shards; ++index) {
      dataset.records += dataset.records_of(EpochIndex(0), ShardIndex(index));
    }
    plan.push_back(std::move(dataset));
  }
  return plan;
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
  if (!IsEvaluate(shard)) {
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

uint32_t Workload::PartIndex(const ShardId& shard, MinibatchIndex minibatch,
                             PartitionId partition) const {
  return (first_batch_.at(shard) + minibatch.value()) * partitions_ + partition.value();
}

std::string Workload::NameOf(uint32_t part) const {
  const TrainBatch& batch = batches_[part / partitions_];
  return fmt::format("shard {} minibatch {} partition {}", ToString(batch.shard),
                     batch.minibatch.value(), part % partitions_);
}

}  // namespace muster::sim
