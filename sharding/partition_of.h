#pragma once

#include <bit>
#include <cstdint>

#include "base/random.h"
#include "base/words/types.h"

namespace muster {

/// The partition that holds row `key` of `table`, in [0, partition_count). It must never change,
/// because stored state depends on it.
inline PartitionId PartitionOf(TableId table, uint64_t key, uint32_t partition_count) {
  const uint64_t hash = HashWords(table.value(), key);
  // The usual numbers are powers of two, and a division takes longer than the hash.
  const uint64_t rest =
      std::has_single_bit(partition_count) ? hash & (partition_count - 1) : hash % partition_count;
  return PartitionId(static_cast<uint32_t>(rest));
}

}  // namespace muster
