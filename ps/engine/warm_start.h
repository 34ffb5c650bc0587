#pragma once

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "base/words/types.h"

namespace muster::ps {

/// The rows that one table starts from. ps/export implements it for a folder that `muster export`
/// has written. A server loads it once, and its partitions share it. Thread-safe, because it is
/// immutable.
class WarmStartSource {
 public:
  virtual ~WarmStartSource() = default;
  /// Calls `row` for every row of the table that lies in the partition, once for each key. `values:
  /// [dim] float32` is finite, and valid during the call.
  virtual void ForEachRow(
      PartitionId partition,
      absl::FunctionRef<void(uint64_t key, std::span<const float> values)> row) const = 0;
};

}  // namespace muster::ps
