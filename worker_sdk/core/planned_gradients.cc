#include "worker_sdk/core/planned_gradients.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster::sdk {

PlannedGradients::PlannedGradients(std::shared_ptr<const RowBatch> pull)
    : pull_(std::move(pull)), pushed_(pull_->plan.tables.size(), false) {
  values_.resize(pull_->plan.value_count);
}

RowsBefore PlannedGradients::Touch(size_t table) {
  const bool before = pushed_[table];
  pushed_[table] = true;
  return before ? RowsBefore::kSome : RowsBefore::kNone;
}

void PlannedGradients::Add(size_t table, const KeySet& keys, std::span<const float> gradients) {
  const TablePlaces& places = pull_->plan.tables[table];
  MUSTER_CHECK(keys.unique.size() == places.offset.size());
  MUSTER_CHECK(gradients.size() == keys.original.size() * places.dim);
  finite_ &= SumRows(keys.inverse, places.offset, keys.original.size(), places.dim,
                     gradients.data(), Touch(table), Reading::kSoon, values_.data());
}

void PlannedGradients::AddDense(size_t table, std::span<const float> gradient) {
  const TablePlaces& places = pull_->plan.tables[table];
  const size_t whole = gradient.size() / places.dim;
  const size_t rest = gradient.size() % places.dim;
  MUSTER_CHECK(whole + (rest > 0 ? 1 : 0) == places.offset.size());
  const RowsBefore before = Touch(table);
  finite_ &= SumRows({}, places.offset, whole, places.dim, gradient.data(), before, reading(),
                     values_.data());
  if (rest == 0) return;
  PooledVector<float> last(places.dim, 0.0f);
  std::ranges::copy(gradient.last(rest), last.begin());
  finite_ &= SumRows({}, std::span(places.offset).last(1), 1, places.dim, last.data(), before,
                     Reading::kSoon, values_.data());
}

bool PlannedGradients::complete() const {
  return std::ranges::all_of(pushed_, [](bool pushed) { return pushed; });
}

std::span<const float> PlannedGradients::Row(size_t table, size_t position) const {
  const TablePlaces& places = pull_->plan.tables[table];
  return std::span(values_).subspan(places.offset[position], places.dim);
}

std::shared_ptr<const RowBatch> PlannedGradients::Take() {
  MUSTER_CHECK(complete());
  auto batch = MakePooled<RowBatch>();
  // The sender needs neither the key nor the table of a row.
  batch->plan.keys = pull_->plan.keys;
  batch->plan.groups = pull_->plan.groups;
  batch->plan.parts = pull_->plan.parts;
  batch->plan.value_count = pull_->plan.value_count;
  batch->values = std::move(values_);
  return batch;
}

}  // namespace muster::sdk
