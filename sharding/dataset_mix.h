#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster {

/// How the shards of several train datasets are mixed in one epoch: each shard has a turn, and the
/// shard with the smallest turn runs next; of equal turns, that of the first dataset. So the
/// datasets run out at the same time, unless weights say otherwise. Pure.
struct DatasetMix {
  uint64_t shards = 0;       // of an epoch
  uint64_t minibatches = 0;  // of an epoch
  /// How fast the dataset is read, compared with one whose share of the minibatches is its share of
  /// the data. 1: it lasts as long as the epoch; 2: it is used up in the middle.
  double pace = 1;

  /// The middle of the shard in the epoch, in [0, 1) for a pace of 1.
  double TurnOf(uint64_t index) const {
    return (static_cast<double>(index) + 0.5) / (static_cast<double>(shards) * pace);
  }
  /// The number of shards whose turn comes before `turn`; of equal turns if `equal`.
  uint64_t ShardsBefore(double turn, bool equal) const;
};

/// The paces of datasets with these numbers of minibatches. `weights`: what each shall have of the
/// minibatches while all have some left, in proportion; all 0: in proportion to their minibatches.
/// Requires that all weights are 0 or none.
std::vector<double> PacesOf(std::span<const uint64_t> minibatches, std::span<const double> weights);

/// How many minibatches of all `datasets` have their turn before shard `index` of dataset
/// `dataset`.
uint64_t MinibatchesBefore(std::span<const DatasetMix> datasets, size_t dataset, uint64_t index);

}  // namespace muster
