#include "sharding/permutation.h"

#include <algorithm>
#include <bit>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace muster {

Permutation::Permutation(uint64_t key, uint64_t size) : size_(size) {
  const int bits = std::bit_width(std::max<uint64_t>(size, 2) - 1);
  half_bits_ = static_cast<uint32_t>(bits + 1) / 2;
  // The network must permute a range that holds every number. Otherwise, a walk along its cycle
  // might never return.
  MUSTER_CHECK(half_bits_ < 32 ? size <= uint64_t{1} << (2 * half_bits_) : half_bits_ == 32);
  for (int round = 0; round < kRounds; ++round) keys_[round] = HashWords(key, round);
}

uint64_t Permutation::Forward(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (const uint64_t key : keys_) {
    left ^= HashWords(key, right) & mask;
    std::swap(left, right);
  }
  return (left << half_bits_) | right;
}

uint64_t Permutation::Backward(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (const uint64_t key : std::ranges::reverse_view(keys_)) {
    std::swap(left, right);
    left ^= HashWords(key, right) & mask;
  }
  return (left << half_bits_) | right;
}

// The network permutes a power of four below 4 * size. A walk along its cycle until it is back
// inside permutes [0, size).
uint64_t Permutation::At(uint64_t index) const {
  MUSTER_CHECK(index < size_);
  do {
    index = Forward(index);
  } while (index >= size_);
  return index;
}

uint64_t Permutation::IndexOf(uint64_t value) const {
  MUSTER_CHECK(value < size_);
  do {
    value = Backward(value);
  } while (value >= size_);
  return value;
}

}  // namespace muster
