#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/words/types.h"
#include "proto/wire/parts.h"
#include "worker_sdk/core/pooled.h"
#include "worker_sdk/core/row_check.h"
#include "worker_sdk/core/row_kernels.h"

namespace muster::sdk {

/// A dense tensor as a pull has brought it: `values: [blocks, dim] float32 row-major`, the key of a
/// row is its block. Never changed once a pull has handed it out, so any number of minibatches may
/// share it.
struct Tensor {
  /// What the rows of a partition are: this version under this owner epoch.
  struct Held {
    OwnerEpoch epoch;
    uint64_t version = wire::kNoVersion;
  };
  std::shared_ptr<float[]> values;
  PooledVector<Held> held;  // by partition; those that are not listed have no version
};

/// Rows to be copied: of a tensor, row i from `from + i * dim` to `to + keys[i] * dim`; of a sparse
/// table, as PlaceRows does. What it points to outlives it, if the answer that brought the rows
/// does.
struct RowMove {
  const float* from = nullptr;
  float* to = nullptr;
  size_t dim = 0;
  std::span<const uint64_t> keys{};
  /// Of a sparse table: PlaceRows' own.
  std::span<const uint32_t> ids{};
  std::span<const uint32_t> first{};
  /// They come from where they go to in another tensor: row i is at `from + keys[i] * dim`.
  bool from_tensor = false;
  Reading reading = Reading::kSoon;
  std::shared_ptr<const void> keeps_to{};
  std::shared_ptr<const void> keeps_from{};
};
/// `check`: checks the rows of each move just before they are copied; null: nothing does. The moves
/// are then in the order of the rows, none from a tensor.
void MoveRows(std::span<const RowMove> moves, RowCheck* check = nullptr);

/// A dense tensor on its way: what one pull has of it. Parts that are unchanged since the tensor
/// that it began with are that one's rows; if all are, that tensor is the result, and nothing was
/// copied. Not thread-safe; the moves that it asks for may be made without it.
class PulledTensor {
 public:
  /// `base`: the newest one received before; null: none.
  PulledTensor(TableId table, uint32_t dim, size_t floats, std::shared_ptr<const Tensor> base)
      : table_(table), dim_(dim), floats_(floats), base_(std::move(base)) {}

  TableId table() const { return table_; }
  /// The version of the partition's rows in the base, if they came under this owner epoch.
  uint64_t Holds(PartitionId partition, OwnerEpoch epoch) const;

  /// A partition's rows have come, of this version: has them moved into their place. What comes
  /// later for the partition takes their place.
  void Place(PartitionId partition, const Tensor::Held& held, std::span<const uint64_t> keys,
             const float* rows, PooledVector<RowMove>* moves);
  /// A partition's rows are what the base has. `keys` must outlive this.
  void Keep(PartitionId partition, std::span<const uint64_t> keys, PooledVector<RowMove>* moves);

  /// A newer tensor was received. It takes the base's place, which may then be freed, unless rows
  /// of the base were kept.
  void Rebase(const std::shared_ptr<const Tensor>& newer);
  /// When all partitions' rows are placed or kept.
  std::shared_ptr<const Tensor> Take();

 private:
  struct Kept {
    PartitionId partition;
    std::span<const uint64_t> keys;
  };
  void TakeFromBase(const Kept& kept, PooledVector<RowMove>* moves);
  void Note(PartitionId partition, const Tensor::Held& held);
  Reading reading() const {
    return floats_ * sizeof(float) >= kReadLaterBytesMin ? Reading::kLater : Reading::kSoon;
  }

  TableId table_;
  uint32_t dim_;
  size_t floats_;  // of all blocks
  std::shared_ptr<const Tensor> base_;
  std::shared_ptr<Tensor> next_;  // from the first rows that are not the base's
  PooledVector<Kept> kept_;
};

}  // namespace muster::sdk
