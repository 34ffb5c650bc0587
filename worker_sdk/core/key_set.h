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

/// Sums the gradients that one minibatch pushes to one table. Not thread-safe.
class GradientSum {
 public:
  explicit GradientSum(uint32_t dim) : dim_(dim) {}
  /// Adds `gradients: [keys.original.size(), dim] float32 row-major`; rows of a repeated key add
  /// up.
  void Add(const KeySet& keys, std::span<const float> gradients);
  /// As above for a dense tensor of `gradient.size()` elements in rows ("blocks") of dim, key =
  /// block; the last row is padded with zeros.
  void AddDense(std::span<const float> gradient);

  uint32_t dim() const { return dim_; }
  /// Each once, in order of first appearance.
  const PooledVector<uint64_t>& keys() const { return index_ ? index_->keys() : keys_; }
  /// `[keys().size(), dim] float32 row-major`.
  const PooledVector<float>& gradients() const { return gradients_; }

 private:
  uint32_t dim_;
  PooledVector<uint64_t> keys_;    // of the first call, until a call has other keys
  std::optional<KeyIndex> index_;  // from then on
  PooledVector<float> gradients_;
};

/// Position of the first NaN or infinity in `values`, if there is one.
std::optional<size_t> FirstNonFinite(std::span<const float> values);

}  // namespace muster::sdk
