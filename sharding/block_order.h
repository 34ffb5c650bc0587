#pragma once

#include <cstdint>
#include <vector>

#include "sharding/permutation.h"

namespace muster {

/// The order in which blocks of consecutive records run in an epoch that is shuffled: position ->
/// block. A bijection of [0, blocks), computed and never stored; a pure function of the arguments.
/// It must never change, because stored state depends on it. Immutable, so thread-safe.
///
/// The blocks are divided into strata of neighbours. Each row of `strata` positions takes one block
/// of each stratum, and any part of a row takes them from everywhere. So a shard of that many
/// blocks is a stratified sample of the whole dataset: whatever the records are sorted by, each
/// shard has its share of every part. Independent draws would not do: a shard of n blocks of a
/// sorted file differs from the whole by 1 / sqrt(n). Source: stratified sampling (Cochran,
/// "Sampling Techniques", 1977, chapter 5).
class BlockOrder {
 public:
  /// Requires blocks > 0 and strata > 0.
  BlockOrder(uint64_t key, uint64_t blocks, uint32_t strata);

  uint64_t blocks() const { return blocks_; }
  /// Requires position < blocks().
  uint64_t BlockAt(uint64_t position) const;
  /// The position with BlockAt(position) == block. Requires block < blocks(). O(log strata).
  uint64_t PositionOf(uint64_t block) const;

 private:
  /// The first block of a stratum; of the one after the last: blocks().
  uint64_t BeginOf(uint64_t stratum) const;
  /// How many of the strata before this one are long: they have a block more than the others, and
  /// are spread evenly.
  uint64_t LongBefore(uint64_t stratum) const;

  /// A permutation of [0, size) in which neighbours are far apart, and any few in a row are spread
  /// evenly: multiples of a step of about the golden section. Source: Weyl, "Über die
  /// Gleichverteilung von Zahlen mod. Eins", 1916.
  struct Spread {
    explicit Spread(uint64_t of);
    uint64_t At(uint64_t i) const { return i * step % size; }
    uint64_t IndexOf(uint64_t value) const { return value * inverse % size; }
    uint64_t size, step = 1, inverse = 1;
  };

  uint64_t blocks_;
  uint64_t strata_;
  uint64_t full_rows_;           // rows that have a block of each stratum
  uint64_t long_;                // strata with a block in the last row, too
  Spread spread_, last_spread_;  // place in a row -> stratum; place in the last row -> long stratum
  std::vector<Permutation> rows_;  // [strata] row -> block of the stratum
};

}  // namespace muster
