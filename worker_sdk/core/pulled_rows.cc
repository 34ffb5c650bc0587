// What a PartSender does with the rows of pulls that have dense tensors.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "worker_sdk/core/part_sender.h"

namespace muster::sdk {
namespace {

std::span<const PlanGroup> GroupsOf(const RowPlan& plan, const PlanPart& part) {
  return std::span(plan.groups).subspan(part.group_begin, part.group_count);
}

}  // namespace

bool PartSender::IsOfLength(const InFlight& request, std::span<const wire::PartReply> parts,
                            const ReceivedRows& rows) {
  return parts.size() == request.parts.size() && rows.versions.size() == request.versions.size();
}

void PartSender::BeginRows(const RowBatch& batch, Delivery* delivery) {
  delivery->rows.part_rows.resize(batch.plan.parts.size(), nullptr);
  for (const TablePlaces& table : batch.plan.tables) {
    if (!table.dense) continue;
    const auto newest = newest_.find(table.table);
    delivery->tensors.emplace_back(table.table, table.dim, table.offset.size() * table.dim,
                                   newest == newest_.end() ? nullptr : newest->second.tensor);
  }
}

PulledTensor* PartSender::TensorOf(Delivery* delivery, TableId table) {
  const auto found = std::ranges::find(delivery->tensors, table, &PulledTensor::table);
  MUSTER_CHECK(found != delivery->tensors.end());
  return &*found;
}

void PartSender::AskByVersion(const Delivery& delivery, const PlanPart& part, OwnerEpoch epoch,
                              PooledVector<uint64_t>* versions) {
  for (const PlanGroup& group : GroupsOf(delivery.batch->plan, part)) {
    if (!group.dense) continue;
    const auto tensor = std::ranges::find(delivery.tensors, group.table, &PulledTensor::table);
    versions->push_back(tensor->Holds(part.partition, epoch));
  }
}

PooledVector<RowMove> PartSender::PlaceRows(RequestId id, std::span<const wire::PartReply> parts,
                                            const ReceivedRows& rows) {
  PooledVector<RowMove> moves;
  const auto it = in_flight_.find(id);
  if (it == in_flight_.end() || it->second.versions.empty()) return moves;
  InFlight& request = it->second;
  const auto found = deliveries_.find(request.delivery);
  if (found == deliveries_.end() || !IsOfLength(request, parts, rows)) return moves;
  Delivery& delivery = found->second;
  const RowPlan& plan = delivery.batch->plan;
  uint64_t sparse_floats = 0;
  for (const uint32_t index : request.parts) {
    for (const PlanGroup& group : GroupsOf(plan, plan.parts[index])) {
      if (!group.dense) sparse_floats += group.floats();
    }
  }
  RowCursor at{.row = rows.values, .sparse = nullptr, .version = 0};
  request.sparse = rows.block;
  if (rows.block == nullptr && sparse_floats > 0) {
    std::shared_ptr<float[]> sparse = MakeRowBlock(sparse_floats);
    at.sparse = sparse.get();
    request.sparse = std::move(sparse);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint32_t index = request.parts[i];
    const bool awaited = SpeaksOf(delivery.parts[index], id).has_value();
    request.placed.push_back(PlacePart(&delivery, index, parts[i].code == wire::PartCode::kOk,
                                       awaited, request, rows, &at, &moves));
  }
  return moves;
}

PartSender::PlacedPart PartSender::NextRows(const Delivery& delivery, const InFlight& request,
                                            size_t position, bool ok, const float** row) {
  if (!request.placed.empty()) return request.placed[position];
  if (delivery.push || !ok) return {.whole = true};
  const PlanPart& part = delivery.batch->plan.parts[request.parts[position]];
  return {.whole = true, .sparse = std::exchange(*row, *row + part.value_count)};
}

PartSender::PlacedPart PartSender::PlacePart(Delivery* delivery, uint32_t index, bool ok,
                                             bool awaited, const InFlight& request,
                                             const ReceivedRows& rows, RowCursor* at,
                                             PooledVector<RowMove>* moves) {
  const RowPlan& plan = delivery->batch->plan;
  const PlanPart& part = plan.parts[index];
  const OwnerEpoch epoch = delivery->parts[index].epoch;
  PlacedPart placed{.whole = true};
  uint64_t key = part.key_begin;
  for (const PlanGroup& group : GroupsOf(plan, part)) {
    const std::span<const uint64_t> keys = std::span(plan.keys).subspan(key, group.keys);
    key += group.keys;
    const float* const row = at->row;
    if (!group.dense) {
      if (!ok) continue;
      at->row += group.floats();
      const float* const kept = at->sparse != nullptr ? at->sparse : row;
      if (placed.sparse == nullptr) placed.sparse = kept;
      if (at->sparse == nullptr) continue;
      moves->push_back(
          {.from = row, .to = at->sparse, .dim = group.floats(), .keeps_to = request.sparse});
      at->sparse += group.floats();
      continue;
    }
    const uint64_t asked = request.versions[at->version], answered = rows.versions[at->version];
    ++at->version;
    if (!ok) continue;
    const bool unchanged = wire::Group{.version = asked}.Unchanged(answered);
    if (!unchanged) at->row += group.floats();
    if (!awaited) continue;
    PulledTensor* const tensor = TensorOf(delivery, group.table);
    if (!unchanged) {
      tensor->Place(part.partition, {epoch, answered}, keys, row, moves);
    } else if (tensor->Holds(part.partition, epoch) == answered) {
      tensor->Keep(part.partition, keys, moves);
    } else {
      placed.whole = false;  // what it speaks of has been given up
    }
  }
  return placed;
}

void PartSender::TakeTensors(DeliveryId id, Delivery* delivery) {
  if (delivery->tensors.empty()) return;
  for (const TablePlaces& table : delivery->batch->plan.tables) {
    delivery->rows.tensors.push_back(table.dense ? TensorOf(delivery, table.table)->Take()
                                                 : nullptr);
    if (!table.dense) continue;
    const std::shared_ptr<const Tensor>& tensor = delivery->rows.tensors.back();
    MUSTER_CHECK(tensor != nullptr);
    Newest& newest = newest_[table.table];
    if (newest.tensor != nullptr && newest.pull > id) continue;
    newest = {id, tensor};
    for (auto& [other, waiting] : deliveries_) {
      if (other == id || waiting.tensors.empty()) continue;
      const auto its = std::ranges::find(waiting.tensors, table.table, &PulledTensor::table);
      if (its != waiting.tensors.end()) its->Rebase(tensor);
    }
  }
  delivery->tensors.clear();
}

}  // namespace muster::sdk
