#pragma once

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "base/words/types.h"

namespace muster::ps {

/// The rows that one table starts from. ps/export implements it over a folder written by `muster
/// export`; one is loaded per server and shared by its partitions. Thread-safe: immutable.
class WarmStartSource {
 public:
  virtual ~WarmStartSource() = default;
  /// Calls `row` for every row of the table that lies in the partition, each key once: `values:
  /// [dim] float32`, finite, valid during the call.
  virtual void ForEachRow(
      PartitionId partition,
      absl::FunctionRef<void(uint64_t key, std::span<const float> values)> row) const = 0;
};

}  // namespace muster::ps
