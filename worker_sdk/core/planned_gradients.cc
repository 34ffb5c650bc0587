#include "worker_sdk/core/planned_gradients.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"

namespace muster::sdk {

PlannedGradients::PlannedGradients(std::shared_ptr<const RowBatch> planned, Keys keys)
    : planned_(std::move(planned)),
      keys_(std::move(keys)),
      pushed_(planned_->plan.tables.size(), false) {
  MUSTER_CHECK(keys_.size() == pushed_.size());
  values_.resize(planned_->plan.value_count);
}

PlannedGradients PlannedGradients::Merge(std::span<const PlannedGradients> all,
                                         std::span<const PartitionId> order) {
  struct Rows {
    uint32_t dim;
    KeyIndex index;
  };
  std::map<TableId, Rows, std::less<>, PoolAllocator<std::pair<const TableId, Rows>>> rows;
  const auto for_each_pushed = [&](const auto& visit) {
    for (const PlannedGradients& one : all) {
      for (size_t t = 0; t < one.keys_.size(); ++t) {
        if (one.pushed_[t]) visit(one, one.planned_->plan.tables[t], one.keys_[t]->unique);
      }
    }
  };
  for_each_pushed([&](const auto&, const TablePlaces& from, const auto& keys) {
    const auto found = rows.try_emplace(from.table, Rows{from.dim, KeyIndex(keys.size())}).first;
    for (const uint64_t key : keys) found->second.index.Insert(key);
  });
  PooledVector<TableKeys> tables;
  Keys unions;
  for (const auto& [table, its] : rows) {
    auto set = MakePooled<KeySet>();
    set->unique = its.index.keys();
    tables.push_back({table, its.dim, set->unique});
    unions.push_back(std::move(set));
  }
  auto batch = MakePooled<RowBatch>();
  batch->plan = PlanRows(tables, order);
  PlannedGradients merged(batch, std::move(unions));
  merged.values_.assign(merged.values_.size(), 0.0f);
  merged.pushed_.assign(merged.pushed_.size(), true);
  for_each_pushed([&](const auto& one, const TablePlaces& from, const auto& keys) {
    const auto its = rows.find(from.table);
    const TablePlaces& to = batch->plan.tables[std::distance(rows.begin(), its)];
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::span offset = std::span(to.offset).subspan(its->second.index.Insert(keys[i]), 1);
      merged.finite_ &= SumRows({}, offset, 1, from.dim, one.values_.data() + from.offset[i],
                                RowsBefore::kSome, Reading::kSoon, merged.values_.data());
    }
  });
  return merged;
}

RowsBefore PlannedGradients::Touch(size_t table) {
  const bool before = pushed_[table];
  pushed_[table] = true;
  return before ? RowsBefore::kSome : RowsBefore::kNone;
}

void PlannedGradients::Add(size_t table, std::span<const float> gradients) {
  const TablePlaces& places = planned_->plan.tables[table];
  const KeySet& keys = *keys_[table];
  MUSTER_CHECK(keys.unique.size() == places.offset.size());
  MUSTER_CHECK(gradients.size() == keys.original.size() * places.dim);
  finite_ &= SumRows(keys.inverse, places.offset, keys.original.size(), places.dim,
                     gradients.data(), Touch(table), Reading::kSoon, values_.data());
}

void PlannedGradients::AddDense(size_t table, std::span<const float> gradient) {
  const TablePlaces& places = planned_->plan.tables[table];
  const size_t whole = gradient.size() / places.dim;
  const size_t rest = gradient.size() % places.dim;
  MUSTER_CHECK(whole + (rest > 0 ? 1 : 0) == places.offset.size());
  const RowsBefore before = Touch(table);
  finite_ &= SumRows({}, places.offset, whole, places.dim, gradient.data(), before, reading(),
                     values_.data());
  if (rest == 0) return;
  const auto last = std::span(places.offset).last(1);
  finite_ &= SumRows({}, last, 1, static_cast<uint32_t>(rest), gradient.last(rest).data(), before,
                     Reading::kSoon, values_.data());
  // The last block has floats that the tensor lacks; their gradient is 0.
  const std::span beyond = std::span(values_).subspan(last[0] + rest, places.dim - rest);
  std::memset(beyond.data(), 0, beyond.size_bytes());
}

bool PlannedGradients::complete() const {
  return std::ranges::all_of(pushed_, [](bool pushed) { return pushed; });
}

PlannedGradients::Place PlannedGradients::PlaceOf(size_t position) const {
  for (size_t t = 0; t < keys_.size(); ++t) {
    const TablePlaces& places = planned_->plan.tables[t];
    for (size_t i = 0; i < places.offset.size(); ++i) {
      const size_t column = position - places.offset[i];
      if (places.offset[i] > position || column >= places.dim) continue;
      return {places.table, keys_[t]->unique[i], column};
    }
  }
  MUSTER_CHECK(false);
  return {};
}

std::shared_ptr<const RowBatch> PlannedGradients::Take() {
  MUSTER_CHECK(complete());
  auto batch = MakePooled<RowBatch>();
  // The sender needs neither the key nor the table of a row.
  batch->plan.keys = planned_->plan.keys;
  batch->plan.groups = planned_->plan.groups;
  batch->plan.parts = planned_->plan.parts;
  batch->plan.value_count = planned_->plan.value_count;
  batch->values = std::move(values_);
  return batch;
}

}  // namespace muster::sdk
