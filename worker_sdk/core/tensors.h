#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/words/types.h"
#include "proto/wire/parts.h"
#include "worker_sdk/core/kept_memory.h"
#include "worker_sdk/core/row_batch.h"
#include "worker_sdk/core/row_check.h"
#include "worker_sdk/core/row_kernels.h"

namespace muster::sdk {

/// A dense tensor that a pull has received: `values: [blocks, dim] float32 row-major`; the key of a
/// row is its block. It never changes after a pull has handed it out, so any number of minibatches
/// may share it.
struct Tensor {
  /// The state of a partition's rows: this version under this owner epoch.
  struct Held {
    OwnerEpoch epoch;
    uint64_t version = wire::kNoVersion;
  };
  std::shared_ptr<float[]> values;
  /// Sorted by partition; those that are not listed have no version. A list of the partitions that
  /// the tensor has, because a small one has few of them.
  PooledVector<std::pair<PartitionId, Held>> held;

  /// Nothing known: no version.
  Held HeldOf(PartitionId partition) const;
  void Hold(PartitionId partition, const Held& state);
};

/// Rows of a tensor to be copied, row i from `from + i * dim` to `to + keys[i] * dim`. What it
/// points to outlives it, if the answer that brought the rows does.
struct RowMove {
  const float* from = nullptr;
  float* to = nullptr;
  size_t dim = 0;
  std::span<const uint64_t> keys{};
  /// The rows come from the same places in another tensor: row i is at `from + keys[i] * dim`.
  bool from_tensor = false;
  Reading reading = Reading::kSoon;
  std::shared_ptr<const void> keeps_to{};
  std::shared_ptr<const void> keeps_from{};
};
void MoveRows(std::span<const RowMove> moves);

/// The rows of an answer to be copied to their places. It keeps the places, but not the answer.
struct RowMoves {
  /// The sparse rows of a part of the batch, which lie one after the other. They go to the batch's
  /// outputs.
  struct Sparse {
    uint32_t part = 0;
    const float* from = nullptr;
  };
  std::shared_ptr<const RowBatch> batch;
  PooledVector<Sparse> sparse;  // in the order of the answer
  PooledVector<RowMove> tensors;
};
/// `check`: checks the sparse rows of each part just before they are copied; null: nothing does.
void MoveRows(const RowMoves& moves, RowCheck* check = nullptr);

/// A dense tensor that one pull is receiving. For parts that have not changed since the base
/// tensor, it uses the rows of the base. If no part has changed, the base is the result, and
/// nothing is copied. Not thread-safe; the caller may make the requested moves without it.
class PulledTensor {
 public:
  /// `base`: the newest one received before; null: none.
  PulledTensor(TableId table, uint32_t dim, size_t floats, std::shared_ptr<const Tensor> base)
      : table_(table), dim_(dim), floats_(floats), base_(std::move(base)) {}

  TableId table() const { return table_; }
  /// The version of the partition's rows in the base, if they came under this owner epoch.
  uint64_t Holds(PartitionId partition, OwnerEpoch epoch) const;

  /// A partition's rows of this version have arrived: returns their moves into place. Later rows of
  /// the partition replace them.
  void Place(PartitionId partition, const Tensor::Held& held, std::span<const uint64_t> keys,
             const float* rows, PooledVector<RowMove>* moves);
  /// A partition's rows have not changed since the base. `keys` must outlive this.
  void Keep(PartitionId partition, std::span<const uint64_t> keys, PooledVector<RowMove>* moves);

  /// A newer tensor was received. It takes the base's place, which may then be freed, unless rows
  /// of the base were kept.
  void Rebase(const std::shared_ptr<const Tensor>& newer);
  /// Call it when all partitions' rows are placed or kept.
  std::shared_ptr<const Tensor> Take();

 private:
  struct Kept {
    PartitionId partition;
    std::span<const uint64_t> keys;
  };
  void TakeFromBase(const Kept& kept, PooledVector<RowMove>* moves);
  Reading reading() const {
    return floats_ * sizeof(float) >= kReadLaterBytesMin ? Reading::kLater : Reading::kSoon;
  }

  TableId table_;
  uint32_t dim_;
  size_t floats_;  // of all blocks
  std::shared_ptr<const Tensor> base_;
  std::shared_ptr<Tensor> next_;  // set with the first rows that are not from the base
  PooledVector<Kept> kept_;
};

}  // namespace muster::sdk
