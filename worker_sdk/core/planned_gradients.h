#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "worker_sdk/core/kept_memory.h"
#include "worker_sdk/core/key_set.h"
#include "worker_sdk/core/row_batch.h"
#include "worker_sdk/core/row_kernels.h"

namespace muster::sdk {

/// Gradients that a minibatch pushes for the rows of one plan. Each gradient is added, in one pass,
/// where it will be sent from. The plan is that of a pull of the same keys, or of one push. Not
/// thread-safe.
class PlannedGradients {
 public:
  using Keys = PooledVector<std::shared_ptr<const KeySet>>;
  /// `planned`: only its plan counts. `keys`: of each of the plan's tables.
  PlannedGradients(std::shared_ptr<const RowBatch> planned, Keys keys);
  /// The sums of `all`, under a plan with those rows that have gradients. `order`: as in PlanRows.
  static PlannedGradients Merge(std::span<const PlannedGradients> all,
                                std::span<const PartitionId> order);

  /// Adds `gradients: [original.size(), dim] float32 row-major` of the table's keys.
  void Add(size_t table, std::span<const float> gradients);
  /// As above for a dense tensor: `gradient` in rows ("blocks") of dim, the last of which may be
  /// short.
  void AddDense(size_t table, std::span<const float> gradient);

  /// Every table has gradients: they can be sent as they are.
  bool complete() const;
  /// No sum is NaN or infinity.
  bool finite() const { return finite_; }
  /// `[plan.value_count]`, of which the rows of tables without gradients are undefined.
  std::span<const float> values() const { return values_; }
  /// What values()[position] is.
  struct Place {
    TableId table;
    uint64_t key = 0;
    size_t column = 0;
  };
  Place PlaceOf(size_t position) const;

  /// The batch to send. Requires complete(); call nothing else afterwards.
  std::shared_ptr<const RowBatch> Take();

 private:
  RowsBefore Touch(size_t table);
  /// For stored gradients: they are sent when all are present.
  Reading reading() const {
    const bool later = values_.size() * sizeof(float) >= kReadLaterBytesMin;
    return later ? Reading::kLater : Reading::kSoon;
  }

  std::shared_ptr<const RowBatch> planned_;
  Keys keys_;
  RowVector<float> values_;
  PooledVector<bool> pushed_;
  bool finite_ = true;
};

}  // namespace muster::sdk
