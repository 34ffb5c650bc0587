#include "worker_sdk/core/tensors.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "worker_sdk/core/kept_memory.h"

namespace muster::sdk {
namespace {

using HeldBy = std::pair<PartitionId, Tensor::Held>;

void MoveSparse(const RowBatch& batch, const PlanPart& part, const float* from, RowCheck* check) {
  const RowPlan& plan = batch.plan;
  MUSTER_CHECK(batch.outputs.size() == plan.tables.size());
  const std::span<const PlanGroup> groups =
      std::span(plan.groups).subspan(part.group_begin, part.group_count);
  if (check != nullptr) {
    const float* end = from;
    for (const PlanGroup& group : groups) end += group.dense ? 0 : group.floats();
    check->UpTo(end);
  }
  uint64_t key = part.key_begin;
  for (const PlanGroup& group : groups) {
    if (group.dense) break;  // the others are too
    const RowOutput& output = batch.outputs[group.number];
    PlaceRows(std::span(plan.ids).subspan(key, group.keys),
              output.spread ? output.keys->first : std::span<const uint32_t>(), group.dim, from,
              output.rows.get());
    from += group.floats();
    key += group.keys;
  }
}

}  // namespace

Tensor::Held Tensor::HeldOf(PartitionId partition) const {
  const auto at = std::ranges::lower_bound(held, partition, {}, &HeldBy::first);
  return at != held.end() && at->first == partition ? at->second : Held();
}

void Tensor::Hold(PartitionId partition, const Held& state) {
  const auto at = std::ranges::lower_bound(held, partition, {}, &HeldBy::first);
  if (at != held.end() && at->first == partition) {
    at->second = state;
  } else {
    held.insert(at, {partition, state});
  }
}

void MoveRows(const RowMoves& moves, RowCheck* check) {
  for (const RowMoves::Sparse& sparse : moves.sparse) {
    MoveSparse(*moves.batch, moves.batch->plan.parts[sparse.part], sparse.from, check);
  }
  MoveRows(moves.tensors);
}

void MoveRows(std::span<const RowMove> moves) {
  for (const RowMove& move : moves) {
    for (size_t i = 0; i < move.keys.size(); ++i) {
      const size_t at = move.keys[i] * move.dim;
      CopyRow(move.from + (move.from_tensor ? at : i * move.dim), move.dim, move.reading,
              move.to + at);
    }
  }
  FinishRows();
}

uint64_t PulledTensor::Holds(PartitionId partition, OwnerEpoch epoch) const {
  if (base_ == nullptr) return wire::kNoVersion;
  const Tensor::Held held = base_->HeldOf(partition);
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
  next_->Hold(kept.partition, base_->HeldOf(kept.partition));
}

void PulledTensor::Place(PartitionId partition, const Tensor::Held& held,
                         std::span<const uint64_t> keys, const float* rows,
                         PooledVector<RowMove>* moves) {
  if (next_ == nullptr) {
    next_ = MakePooled<Tensor>();
    next_->values = MakeRowBlock(floats_);
    if (base_ != nullptr) next_->held.reserve(base_->held.size());
    for (const Kept& kept : kept_) TakeFromBase(kept, moves);
  }
  moves->push_back({.from = rows,
                    .to = next_->values.get(),
                    .dim = dim_,
                    .keys = keys,
                    .reading = reading(),
                    .keeps_to = next_});
  next_->Hold(partition, held);
}

void PulledTensor::Keep(PartitionId partition, std::span<const uint64_t> keys,
                        PooledVector<RowMove>* moves) {
  MUSTER_CHECK(base_ != nullptr && base_->HeldOf(partition).version != wire::kNoVersion);
  kept_.push_back({partition, keys});
  if (next_ != nullptr) TakeFromBase(kept_.back(), moves);
}

void PulledTensor::Rebase(const std::shared_ptr<const Tensor>& newer) {
  if (kept_.empty()) base_ = newer;
}

std::shared_ptr<const Tensor> PulledTensor::Take() {
  if (next_ == nullptr) return std::exchange(base_, nullptr);
  return std::exchange(next_, nullptr);
}

}  // namespace muster::sdk
