#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "master/core/core_options.h"
#include "proto/messages/group_control.h"
#include "proto/messages/metrics.h"

/// The training of a simulated group: pure functions, so that the judge knows the result. A state
/// of the model, a gradient and a sum are one number each, which depends on everything from which
/// they come.
namespace muster::sim {

inline constexpr DatasetId kGroupEvaluate{2};
inline constexpr uint32_t kGroupEpochs = 2, kGroupMinibatchSize = 4;

/// Two train datasets of two epochs, and an evaluate dataset.
std::vector<DatasetPlan> GroupPlan();
uint32_t GroupMinibatchesOf(const ShardId& shard);
inline bool IsGroupEvaluate(const ShardId& shard) {
  return shard.dataset == kGroupEvaluate;
}
/// Of some minibatches of a shard.
ShardMetrics GroupMetricsOf(const ShardId& shard, const std::vector<uint32_t>& minibatches);
/// Of a whole epoch of a dataset.
ShardMetrics GroupMetricsOfEpoch(DatasetId dataset, EpochIndex epoch);

using ModelState = uint64_t;
/// The state that a trainer makes itself.
ModelState InitialModel(uint32_t digest);
uint64_t GradientOf(ModelState state, const ShardId& shard, uint32_t minibatch);

/// What one member adds, or all together.
struct ModelSum {
  uint64_t value = 0;
  std::vector<uint32_t> minibatches;  // in the order in which they were added
  /// Of floating point: depends on who has added what. 0: the sum is exact.
  uint64_t rounding = 0;
  /// Of the whole step, when it has happened: no part of the digest, but of what is applied.
  uint64_t records = 0;

  uint32_t digest() const;
  friend bool operator==(const ModelSum&, const ModelSum&) = default;
};
/// Of the parts of all members, by rank. `exact`: it does not depend on how they are divided.
ModelSum SumOf(const std::vector<ModelSum>& parts, bool exact);
ModelState Applied(ModelState state, const ModelSum& sum);
/// CRC of a copy of the state; all stripes of a copy have the same content.
uint32_t CopyCrc(ModelState state, uint32_t stripe);

/// Where processes store their stripes. What is written is durable at once: a process that dies in
/// a write leaves nothing.
using ModelStore = std::map<std::string, ModelState>;

}  // namespace muster::sim
