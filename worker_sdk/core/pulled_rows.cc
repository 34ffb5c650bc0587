// What a PartSender does with the rows of pulls.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "worker_sdk/core/part_sender.h"

namespace muster::sdk {
namespace {

std::span<const PlanGroup> GroupsOf(const RowPlan& plan, const PlanPart& part) {
  return std::span(plan.groups).subspan(part.group_begin, part.group_count);
}

/// True if less than an eighth of the keys are repeats.
bool FewRepeat(const KeySet& keys) {
  return (keys.original.size() - keys.unique.size()) * 8 <= keys.original.size();
}

}  // namespace

std::shared_ptr<float[]> TakeOutput(RowOutput* output, size_t dim) {
  const KeySet& keys = *output->keys;
  std::shared_ptr<float[]> rows = std::move(output->rows);
  if (output->spread) {
    RepeatRows(keys.inverse, keys.first, dim, rows.get());
    return rows;
  }
  std::shared_ptr<float[]> all = MakeRowBlock(keys.original.size() * dim);
  ExpandRows(keys.inverse, dim, rows.get(), all.get());
  return all;
}

std::shared_ptr<RowBatch> MakePull(std::span<const TableKeys> tables,
                                   std::span<const std::shared_ptr<const KeySet>> keys,
                                   std::span<const PartitionId> order) {
  auto batch = MakePooled<RowBatch>();
  batch->plan = PlanRows(tables, order);
  batch->outputs.resize(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    if (tables[t].dense) continue;
    MUSTER_CHECK(keys[t]->unique.size() == tables[t].keys.size());
    const bool spread = FewRepeat(*keys[t]);
    const size_t rows = (spread ? keys[t]->original : keys[t]->unique).size();
    batch->outputs[t] = {keys[t], spread, MakeRowBlock(rows * tables[t].dim)};
  }
  return batch;
}

bool PartSender::IsOfLength(const InFlight& request, std::span<const wire::PartReply> parts,
                            const ReceivedRows& rows) {
  return parts.size() == request.parts.size() && rows.versions.size() == request.versions.size();
}

void PartSender::BeginRows(const RowBatch& batch, Delivery* delivery) {
  for (const TablePlaces& table : batch.plan.tables) {
    if (!table.dense) continue;
    const auto newest = newest_.find(table.table);
    delivery->tensors.emplace_back(table.table, table.dim, table.offset.size() * table.dim,
                                   newest == newest_.end() ? nullptr : newest->second.tensor);
  }
}

PulledTensor& PartSender::TensorOf(Delivery* delivery, size_t number) {
  const size_t sparse = delivery->batch->plan.tables.size() - delivery->tensors.size();
  MUSTER_CHECK(number >= sparse);
  return delivery->tensors[number - sparse];
}

PulledTensor* PartSender::TensorLike(Delivery* delivery, size_t number, TableId table) {
  // Pulls of the same trainer nearly always ask for the same tables.
  PooledVector<PulledTensor>& tensors = delivery->tensors;
  const size_t sparse = delivery->batch->plan.tables.size() - tensors.size();
  if (number >= sparse && number - sparse < tensors.size() &&
      tensors[number - sparse].table() == table) {
    return &tensors[number - sparse];
  }
  const auto its = std::ranges::find(tensors, table, &PulledTensor::table);
  return its == tensors.end() ? nullptr : &*its;
}

void PartSender::AskByVersion(Delivery* delivery, const PlanPart& part, OwnerEpoch epoch,
                              PooledVector<uint64_t>* versions) {
  for (const PlanGroup& group : GroupsOf(delivery->batch->plan, part)) {
    if (!group.dense) continue;
    versions->push_back(TensorOf(delivery, group.number).Holds(part.partition, epoch));
  }
}

RowMoves PartSender::PlaceRows(RequestId id, std::span<const wire::PartReply> parts,
                               const ReceivedRows& rows) {
  RowMoves moves;
  const auto it = in_flight_.find(id);
  if (it == in_flight_.end() || it->second.push) return moves;
  InFlight& request = it->second;
  const auto found = deliveries_.find(request.delivery);
  if (found == deliveries_.end() || !IsOfLength(request, parts, rows)) return moves;
  Delivery& delivery = found->second;
  moves.batch = delivery.batch;
  moves.sparse.reserve(parts.size());
  request.placed.reserve(parts.size());
  RowCursor at{.row = rows.values, .version = 0};
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint32_t index = request.parts[i];
    const bool awaited = SpeaksOf(delivery.parts[index], id).has_value();
    request.placed.push_back(PlacePart(&delivery, index, parts[i].code == wire::PartCode::kOk,
                                       awaited, request, rows, &at, &moves));
  }
  return moves;
}

bool PartSender::PlacePart(Delivery* delivery, uint32_t index, bool ok, bool awaited,
                           const InFlight& request, const ReceivedRows& rows, RowCursor* at,
                           RowMoves* moves) {
  const RowPlan& plan = delivery->batch->plan;
  const PlanPart& part = plan.parts[index];
  if (ok && awaited) moves->sparse.push_back({index, at->row});
  if (delivery->tensors.empty()) {
    if (ok) at->row += part.value_count;
    return true;
  }
  const OwnerEpoch epoch = delivery->parts[index].epoch;
  bool whole = true;
  uint64_t next_key = part.key_begin;
  for (const PlanGroup& group : GroupsOf(plan, part)) {
    const uint64_t first_key = std::exchange(next_key, next_key + group.keys);
    if (!group.dense) {
      if (ok) at->row += group.floats();
      continue;
    }
    const float* const row = at->row;
    const uint64_t asked = request.versions[at->version], answered = rows.versions[at->version];
    ++at->version;
    if (!ok) continue;
    const bool unchanged = wire::Group{.version = asked}.Unchanged(answered);
    if (!unchanged) at->row += group.floats();
    if (!awaited) continue;
    const std::span<const uint64_t> keys = std::span(plan.keys).subspan(first_key, group.keys);
    PulledTensor& tensor = TensorOf(delivery, group.number);
    if (!unchanged) {
      tensor.Place(part.partition, {epoch, answered}, keys, row, &moves->tensors);
    } else if (tensor.Holds(part.partition, epoch) == answered) {
      tensor.Keep(part.partition, keys, &moves->tensors);
    } else {
      whole = false;  // what it speaks of has been given up
    }
  }
  return whole;
}

void PartSender::TakeTensors(DeliveryId id, Delivery* delivery) {
  if (delivery->tensors.empty()) return;
  const RowPlan& plan = delivery->batch->plan;
  for (size_t number = 0; number < plan.tables.size(); ++number) {
    const TablePlaces& table = plan.tables[number];
    delivery->rows.tensors.push_back(table.dense ? TensorOf(delivery, number).Take() : nullptr);
    if (!table.dense) continue;
    const std::shared_ptr<const Tensor>& tensor = delivery->rows.tensors.back();
    MUSTER_CHECK(tensor != nullptr);
    Newest& newest = newest_[table.table];
    if (newest.tensor != nullptr && newest.pull > id) continue;
    newest = {id, tensor};
    for (auto& [other, waiting] : deliveries_) {
      if (other == id || waiting.tensors.empty()) continue;
      if (PulledTensor* const its = TensorLike(&waiting, number, table.table)) {
        its->Rebase(tensor);
      }
    }
  }
  delivery->tensors.clear();
}

}  // namespace muster::sdk
