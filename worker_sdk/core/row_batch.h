#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/words/types.h"
#include "worker_sdk/core/kept_memory.h"
#include "worker_sdk/core/key_set.h"
#include "worker_sdk/core/row_plan.h"

namespace muster::sdk {

/// Where the rows of a sparse table in a pull go. They belong to the pull until it is finished.
struct RowOutput {
  std::shared_ptr<const KeySet> keys;
  /// Few keys repeat, so rows go directly to where the trainer reads them, which saves a copy.
  /// Otherwise, they first go to separate memory, where rows that are copied many times are close
  /// together.
  bool spread = false;
  /// `[keys.original.size(), dim] float32 row-major`, each row where its key appears first; if they
  /// are not spread, `[keys.unique.size(), dim]`, by id.
  std::shared_ptr<float[]> rows;
};
/// The rows of a finished pull for its trainer: `[keys.original.size(), dim] float32 row-major`.
/// Call it once.
std::shared_ptr<float[]> TakeOutput(RowOutput* output, size_t dim);

/// Rows to fetch, or to push with their `values: [plan.value_count]`.
struct RowBatch {
  RowPlan plan;
  RowVector<float> values;
  /// Of a pull: by table of the plan; a dense one has none.
  PooledVector<RowOutput> outputs;
};

/// The rows to fetch of some tables: as PlanRows, and `keys` of the sparse ones, in their order.
std::shared_ptr<RowBatch> MakePull(std::span<const TableKeys> tables,
                                   std::span<const std::shared_ptr<const KeySet>> keys,
                                   std::span<const PartitionId> order);

}  // namespace muster::sdk
