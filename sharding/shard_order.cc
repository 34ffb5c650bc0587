#include "sharding/shard_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace muster {
namespace {

// The purpose of the hash, so that no two uses of the job's seed share numbers.
constexpr uint64_t kShardPurpose = 0x73686172646f7264ULL;
constexpr uint64_t kRecordPurpose = 0x7265636f72646f72ULL;

uint64_t EpochKey(uint64_t seed, uint64_t purpose, DatasetId dataset, EpochIndex epoch) {
  return HashWords(seed, purpose, dataset.value(), epoch.value());
}

}  // namespace

ShardOrder::ShardOrder(uint64_t seed, DatasetId dataset, EpochIndex epoch, uint64_t shard_count,
                       bool shuffle)
    : shard_count_(shard_count) {
  if (!shuffle || shard_count == 0) return;
  permutation_.emplace(EpochKey(seed, kShardPurpose, dataset, epoch), shard_count);
}

uint64_t ShardOrder::NumberAt(ShardIndex index) const {
  MUSTER_CHECK(index.value() < shard_count_);
  return permutation_.has_value() ? permutation_->At(index.value()) : index.value();
}

uint64_t RecordSeed(uint64_t seed, const ShardId& shard) {
  const uint64_t key = EpochKey(seed, kRecordPurpose, shard.dataset, shard.epoch);
  return std::max<uint64_t>(HashWords(key, shard.index.value()), 1);
}

std::vector<uint32_t> RecordOrder(uint64_t shuffle_seed, uint32_t record_count) {
  std::vector<uint32_t> order(record_count);
  std::iota(order.begin(), order.end(), 0);
  if (shuffle_seed == 0) return order;
  Rng rng(shuffle_seed);
  for (uint32_t left = record_count; left > 1; --left) {
    std::swap(order[left - 1], order[rng.Below(left)]);
  }
  return order;
}

}  // namespace muster
