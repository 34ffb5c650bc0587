#include "worker_sdk/core/tensors.h"

#include <utility>

#include "base/check.h"
#include "worker_sdk/core/kept_memory.h"

namespace muster::sdk {
void MoveRows(std::span<const RowMove> moves, RowCheck* check) {
  for (const RowMove& move : moves) {
    if (check != nullptr) check->UpTo(move.from + move.ids.size() * move.dim);
    if (!move.ids.empty()) PlaceRows(move.ids, move.first, move.dim, move.from, move.to);
    for (size_t i = 0; i < move.keys.size(); ++i) {
      const size_t at = move.keys[i] * move.dim;
      CopyRow(move.from + (move.from_tensor ? at : i * move.dim), move.dim, move.reading,
              move.to + at);
    }
  }
  FinishRows();
}

uint64_t PulledTensor::Holds(PartitionId partition, OwnerEpoch epoch) const {
  if (base_ == nullptr || partition.value() >= base_->held.size()) return wire::kNoVersion;
  const Tensor::Held& held = base_->held[partition.value()];
  // A partition counts from the beginning after a restore, or under another owner.
  return held.epoch == epoch ? held.version : wire::kNoVersion;
}

void PulledTensor::TakeFromBase(const Kept& kept, PooledVector<RowMove>* moves) {
  moves->push_back({.from = base_->values.get(),
                    .to = next_->values.get(),
                    .dim = dim_,
                    .keys = kept.keys,
                    .from_tensor = true,
                    .reading = reading(),
                    .keeps_to = next_,
                    .keeps_from = base_});
  Note(kept.partition, base_->held[kept.partition.value()]);
}

void PulledTensor::Place(PartitionId partition, const Tensor::Held& held,
                         std::span<const uint64_t> keys, const float* rows,
                         PooledVector<RowMove>* moves) {
  if (next_ == nullptr) {
    next_ = MakePooled<Tensor>();
    next_->values = MakeRowBlock(floats_);
    for (const Kept& kept : kept_) TakeFromBase(kept, moves);
  }
  moves->push_back({.from = rows,
                    .to = next_->values.get(),
                    .dim = dim_,
                    .keys = keys,
                    .reading = reading(),
                    .keeps_to = next_});
  Note(partition, held);
}

void PulledTensor::Keep(PartitionId partition, std::span<const uint64_t> keys,
                        PooledVector<RowMove>* moves) {
  MUSTER_CHECK(base_ != nullptr && partition.value() < base_->held.size());
  kept_.push_back({partition, keys});
  if (next_ != nullptr) TakeFromBase(kept_.back(), moves);
}

void PulledTensor::Note(PartitionId partition, const Tensor::Held& held) {
  if (next_->held.size() <= partition.value()) next_->held.resize(partition.value() + 1);
  next_->held[partition.value()] = held;
}

void PulledTensor::Rebase(const std::shared_ptr<const Tensor>& newer) {
  if (kept_.empty()) base_ = newer;
}

std::shared_ptr<const Tensor> PulledTensor::Take() {
  if (next_ == nullptr) return std::exchange(base_, nullptr);
  return std::exchange(next_, nullptr);
}

}  // namespace muster::sdk
