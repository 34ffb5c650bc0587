#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/words/types.h"

namespace muster {

/// The partition that holds row `key` of `table`, in [0, partition_count). It must never change,
/// because stored state depends on it.
inline PartitionId PartitionOf(TableId table, uint64_t key, uint32_t partition_count) {
  return PartitionId(static_cast<uint32_t>(HashWords(table.value(), key) % partition_count));
}

}  // namespace muster
