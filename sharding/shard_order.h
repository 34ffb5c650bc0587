#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/words/types.h"
#include "sharding/permutation.h"

namespace muster {

/// The order in which the shards of one epoch of one dataset run: position (ShardIndex) -> number
/// of ShardLayout. A bijection of [0, shard_count), computed and never stored; a pure function of
/// the arguments. It must never change, because stored state depends on it. Immutable, so
/// thread-safe.
class ShardOrder {
 public:
  ShardOrder(uint64_t seed, DatasetId dataset, EpochIndex epoch, uint64_t shard_count,
             bool shuffle);

  uint64_t shard_count() const { return shard_count_; }
  /// Requires index < shard_count. The identity when not shuffled.
  uint64_t NumberAt(ShardIndex index) const;

 private:
  uint64_t shard_count_;
  std::optional<Permutation> permutation_;  // none: not shuffled
};

/// The seed that orders the records of a shard (ShardWork.shuffle_seed); never 0. It must never
/// change.
uint64_t RecordSeed(uint64_t seed, const ShardId& shard);

/// The order in which the records of a shard run: a permutation of [0, record_count); the identity
/// for seed 0. It must never change. Source: Fisher-Yates shuffle (Durstenfeld, CACM 7/7, 1964).
std::vector<uint32_t> RecordOrder(uint64_t shuffle_seed, uint32_t record_count);

}  // namespace muster
