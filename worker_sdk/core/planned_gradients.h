#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "worker_sdk/core/kept_memory.h"
#include "worker_sdk/core/key_set.h"
#include "worker_sdk/core/part_sender.h"
#include "worker_sdk/core/row_kernels.h"

namespace muster::sdk {

/// Gradients of a minibatch that pushes the rows of one of its pulls. The pull has already cut
/// these rows into parts. So each gradient is added, in one pass, where it will be sent from. Not
/// thread-safe.
class PlannedGradients {
 public:
  explicit PlannedGradients(std::shared_ptr<const RowBatch> pull);

  /// Adds `gradients: [keys.original.size(), dim] float32 row-major`; `keys` are those that the
  /// pull has of its table number `table`.
  void Add(size_t table, const KeySet& keys, std::span<const float> gradients);
  /// As above for a dense tensor: `gradient` in rows ("blocks") of dim, the last of which may be
  /// short.
  void AddDense(size_t table, std::span<const float> gradient);

  /// Every table of the pull has gradients: they can be sent as they are.
  bool complete() const;
  /// No sum is NaN or infinity.
  bool finite() const { return finite_; }
  bool has(size_t table) const { return pushed_[table]; }
  /// The sums so far of the key at `position` of the table: `[dim]`.
  std::span<const float> Row(size_t table, size_t position) const;
  std::span<const float> values() const { return values_; }
  const RowBatch& pull() const { return *pull_; }

  /// The batch to send. Requires complete(); call nothing else afterwards.
  std::shared_ptr<const RowBatch> Take();

 private:
  RowsBefore Touch(size_t table);
  /// For stored gradients: they are sent when all are present.
  Reading reading() const {
    const bool later = values_.size() * sizeof(float) >= kReadLaterBytesMin;
    return later ? Reading::kLater : Reading::kSoon;
  }

  std::shared_ptr<const RowBatch> pull_;
  RowVector<float> values_;
  PooledVector<bool> pushed_;
  bool finite_ = true;
};

}  // namespace muster::sdk
