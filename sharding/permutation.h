#pragma once

#include <array>
#include <cstdint>

namespace muster {

/// A permutation of [0, size), computed and never stored: a pure function of the key and the size.
/// It must never change, because stored state depends on it. Immutable, so thread-safe.
///
/// Source: a balanced Feistel network with cycle walking (Black and Rogaway, "Ciphers with
/// Arbitrary Finite Domains", CT-RSA 2002, sections 4 and 5), with a keyed hash as round function.
class Permutation {
 public:
  /// Requires size > 0.
  Permutation(uint64_t key, uint64_t size);

  uint64_t size() const { return size_; }
  /// Requires index < size(). Four steps of the network on average at most.
  uint64_t At(uint64_t index) const;
  /// The index with At(index) == value. Requires value < size().
  uint64_t IndexOf(uint64_t value) const;

 private:
  static constexpr int kRounds = 6;
  uint64_t Forward(uint64_t value) const;
  uint64_t Backward(uint64_t value) const;

  uint64_t size_;
  uint32_t half_bits_ = 1;
  std::array<uint64_t, kRounds> keys_{};
};

}  // namespace muster
