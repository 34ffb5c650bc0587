#include "sharding/dataset_mix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/words/parts.h"

namespace muster {

uint64_t DatasetMix::ShardsBefore(double turn, bool equal) const {
  if (shards == 0) return 0;
  const double place = turn * static_cast<double>(shards) * pace - 0.5;
  auto count =
      static_cast<uint64_t>(std::clamp(std::floor(place), 0.0, static_cast<double>(shards)));
  // The turns decide, not how this product was rounded.
  while (count > 0 && (equal ? TurnOf(count - 1) > turn : TurnOf(count - 1) >= turn)) --count;
  while (count < shards && (equal ? TurnOf(count) <= turn : TurnOf(count) < turn)) ++count;
  return count;
}

std::vector<double> PacesOf(std::span<const uint64_t> minibatches,
                            std::span<const double> weights) {
  MUSTER_CHECK(minibatches.size() == weights.size());
  std::vector<double> paces(weights.size(), 1.0);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sum == 0) return paces;
  const auto all =
      static_cast<double>(std::accumulate(minibatches.begin(), minibatches.end(), uint64_t{0}));
  for (size_t i = 0; i < weights.size(); ++i) {
    MUSTER_CHECK(weights[i] > 0);
    if (minibatches[i] > 0) paces[i] = weights[i] / sum * all / static_cast<double>(minibatches[i]);
  }
  return paces;
}

uint64_t MinibatchesBefore(std::span<const DatasetMix> datasets, size_t dataset, uint64_t index) {
  const double turn = datasets[dataset].TurnOf(index);
  uint64_t minibatches = 0;
  for (size_t i = 0; i < datasets.size(); ++i) {
    const DatasetMix& other = datasets[i];
    const uint64_t shards = i == dataset ? index : other.ShardsBefore(turn, i < dataset);
    if (other.shards > 0) minibatches += BeginOfPart(shards, other.shards, other.minibatches);
  }
  return minibatches;
}

}  // namespace muster
