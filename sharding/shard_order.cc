#include "sharding/shard_order.h"

#include <algorithm>
#include <bit>
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
    : shard_count_(shard_count), shuffle_(shuffle) {
  const int bits = std::bit_width(std::max<uint64_t>(shard_count, 2) - 1);
  half_bits_ = static_cast<uint32_t>(bits + 1) / 2;
  // The network must permute a range that holds every number. Otherwise, a walk along its cycle
  // might never return.
  MUSTER_CHECK(half_bits_ < 32 ? shard_count <= uint64_t{1} << (2 * half_bits_) : half_bits_ == 32);
  const uint64_t key = EpochKey(seed, kShardPurpose, dataset, epoch);
  for (int round = 0; round < kRounds; ++round) keys_[round] = HashWords(key, round);
}

uint64_t ShardOrder::Permute(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (const uint64_t key : keys_) {
    left ^= HashWords(key, right) & mask;
    std::swap(left, right);
  }
  return (left << half_bits_) | right;
}

uint64_t ShardOrder::NumberAt(ShardIndex index) const {
  MUSTER_CHECK(index.value() < shard_count_);
  if (!shuffle_) return index.value();
  // The network permutes a power of four below 4 * shard_count; walking its cycle until it is back
  // inside permutes [0, shard_count), in 4 steps on average at most.
  uint64_t number = index.value();
  do {
    number = Permute(number);
  } while (number >= shard_count_);
  return number;
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
