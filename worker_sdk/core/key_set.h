#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "worker_sdk/core/kept_memory.h"

namespace muster::sdk {

/// The keys of one call without repeats. Ids are numbered in the order of first appearance. A
/// value.
struct KeySet {
  /// As the caller gave them; they may repeat.
  PooledVector<uint64_t> original;
  /// Each once.
  PooledVector<uint64_t> unique;
  /// original[i] == unique[inverse[i]]; empty when nothing repeats (then original == unique).
  PooledVector<uint32_t> inverse;
  /// original[first[id]] is where the id appears first; empty when nothing repeats.
  PooledVector<uint32_t> first;

  size_t IndexOf(size_t position) const { return inverse.empty() ? position : inverse[position]; }
};

/// Finds the repeats of `keys`. At most 2^31 keys.
KeySet MakeKeySet(std::span<const uint64_t> keys);

/// An open-addressing index from key to its id (order of insertion). Not thread-safe.
class KeyIndex {
 public:
  /// Expects up to `keys` keys; grows when there are more.
  explicit KeyIndex(size_t keys);
  /// The id of `key`. A new key gets the next id (then id == size() - 1).
  uint32_t Insert(uint64_t key);
  const PooledVector<uint64_t>& keys() const { return keys_; }
  PooledVector<uint64_t> TakeKeys() && { return std::move(keys_); }

 private:
  void Rehash(size_t slots);

  PooledVector<uint64_t> keys_;
  RowVector<uint32_t> slots_;  // id + 1; 0 = free
};

/// Position of the first NaN or infinity in `values`, if there is one.
std::optional<size_t> FirstNonFinite(std::span<const float> values);

}  // namespace muster::sdk
