#include "tests/sim/group/group_model.h"

#include <array>

#include "base/random.h"

namespace muster::sim {
namespace {

struct GroupDataset {
  const char* name;
  DatasetMode mode;
  uint64_t shards;
  uint32_t minibatches;
};
constexpr std::array<GroupDataset, 3> kGroupDatasets = {{{"a", DatasetMode::kTrain, 5, 7},
                                                         {"b", DatasetMode::kTrain, 2, 4},
                                                         {"test", DatasetMode::kEvaluate, 2, 3}}};

}  // namespace

uint32_t GroupMinibatchesOf(const ShardId& shard) {
  const GroupDataset& dataset = kGroupDatasets[shard.dataset.value()];
  // The last one of a file is shorter.
  const bool last = shard.index.value() + 1 == dataset.shards;
  return last ? dataset.minibatches / 2 : dataset.minibatches;
}

std::vector<DatasetPlan> GroupPlan() {
  std::vector<DatasetPlan> plan;
  for (uint32_t i = 0; i < kGroupDatasets.size(); ++i) {
    const GroupDataset& from = kGroupDatasets[i];
    DatasetPlan dataset{from.name, from.mode,           kGroupEpochs, from.shards,
                        0,         kGroupMinibatchSize, nullptr,      {}};
    dataset.size_of = [i](EpochIndex epoch, ShardIndex index) {
      const uint32_t minibatches = GroupMinibatchesOf({DatasetId(i), epoch, index});
      return ShardSize{kGroupMinibatchSize * minibatches, minibatches};
    };
    for (uint64_t index = 0; index < dataset.shards; ++index) {
      dataset.records += dataset.size_of(EpochIndex(0), ShardIndex(index)).records;
    }
    plan.push_back(std::move(dataset));
  }
  return plan;
}

ShardMetrics GroupMetricsOf(const ShardId& shard, const std::vector<uint32_t>& minibatches) {
  ShardMetrics metrics;
  if (minibatches.empty()) return metrics;
  metrics.records = kGroupMinibatchSize * minibatches.size();
  double loss = 0;
  for (const uint32_t minibatch : minibatches) {
    loss += static_cast<double>(1 + minibatch + 10 * shard.index.value());
  }
  metrics.means["loss"] = {loss, static_cast<double>(metrics.records)};
  return metrics;
}

ShardMetrics GroupMetricsOfEpoch(DatasetId dataset, EpochIndex epoch) {
  ShardMetrics all;
  for (uint64_t index = 0; index < kGroupDatasets[dataset.value()].shards; ++index) {
    const ShardId shard{dataset, epoch, ShardIndex(index)};
    std::vector<uint32_t> minibatches;
    for (uint32_t m = 0; m < GroupMinibatchesOf(shard); ++m) minibatches.push_back(m);
    Merge(&all, GroupMetricsOf(shard, minibatches));
  }
  return all;
}

ModelState InitialModel(uint32_t digest) {
  return HashWords(digest, 1);
}

uint64_t GradientOf(ModelState state, const ShardId& shard, uint32_t minibatch) {
  return HashWords(
      state, HashWords(shard.dataset.value(), shard.epoch.value(), shard.index.value()), minibatch);
}

uint32_t ModelSum::digest() const {
  return static_cast<uint32_t>(HashWords(value, rounding));
}

ModelSum SumOf(const std::vector<ModelSum>& parts, bool exact) {
  ModelSum sum;
  for (const ModelSum& part : parts) {
    sum.value += part.value;
    sum.minibatches.insert(sum.minibatches.end(), part.minibatches.begin(), part.minibatches.end());
    if (!exact) sum.rounding = HashWords(sum.rounding, part.value);
  }
  return sum;
}

ModelState Applied(ModelState state, const ModelSum& sum) {
  return HashWords(state, HashWords(sum.value, sum.rounding), sum.records);
}

uint32_t CopyCrc(ModelState state, uint32_t stripe) {
  return static_cast<uint32_t>(HashWords(state, stripe));
}

}  // namespace muster::sim
