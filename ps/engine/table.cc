#include "ps/engine/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "base/check.h"
#include "ps/engine/initializer.h"
#include "ps/engine/optimizer.h"
#include "ps/engine/prefetch.h"
#include "ps/engine/row_gather.h"
#include "ps/engine/schedule.h"
#include "ps/engine/work_costs.h"

namespace muster::ps {
Table::Table(TableSpec spec, uint64_t seed)
    : dim_(spec.dim),
      store_(spec.dim + SlotFloats(spec.optimizer, spec.dim)),
      blocks_(spec.shape.empty() ? UINT64_MAX : DenseBlockCount(spec)),
      seed_(seed),
      spec_(std::move(spec)) {}

uint64_t Table::bytes() const {
  uint64_t imaged = 0;
  for (const RowList& list : imaged_) imaged += list.bytes();
  return store_.bytes() + keys_.bytes() + index_.bytes() + changed_.bytes() + imaged;
}

std::unique_ptr<Table> Table::Filled(const TableSpec& spec, uint64_t seed, PartitionId partition,
                                     const WarmStartSource& source) {
  auto table = std::make_unique<Table>(spec, seed);
  source.ForEachRow(partition, [&](uint64_t key, std::span<const float> values) {
    table->SetValues(key, values);
  });
  return table;
}

absl::Status Table::CheckPull(std::span<const uint64_t> keys, size_t values) const {
  if (values != keys.size() * dim()) {
    return absl::InvalidArgumentError(
        fmt::format("table '{}' has rows of {} floats, but {} keys come with {} floats, not {}",
                    spec_.name, dim(), keys.size(), values, keys.size() * dim()));
  }
  if (blocks_ == UINT64_MAX) return absl::OkStatus();
  for (const uint64_t key : keys) {
    if (key >= blocks_) {
      return absl::InvalidArgumentError(
          fmt::format("block {} of dense table '{}' does not exist: it has {} blocks", key,
                      spec_.name, blocks_));
    }
  }
  return absl::OkStatus();
}

absl::Status Table::CheckRoom(size_t rows) const {
  if (rows < RowIndex::kNoRow - this->rows()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("table '{}' would have more than 2^32 rows in one partition; use more partitions",
                  spec_.name));
}

absl::Status Table::CheckPush(std::span<const uint64_t> keys,
                              std::span<const float> gradients) const {
  if (absl::Status status = CheckPull(keys, gradients.size()); !status.ok()) return status;
  const size_t bad = FirstNonFinite(gradients);
  if (bad == gradients.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("table '{}': the gradient of key {} has {} in column {}; the part was not "
                  "applied",
                  spec_.name, keys[bad / dim()], gradients[bad], bad % dim()));
}

uint64_t Table::WorkPerRow() const {
  // The gradient is read. The row is read and written, and it is copied if an image still needs it.
  const uint64_t passes = copying_ == nullptr ? 2 : 4;
  return kFindWork + (dim() + passes * floats_per_row()) * sizeof(float);
}

uint32_t Table::Create(uint64_t key) {
  const uint32_t row = store_.Append();
  float* floats = store_.Row(row);
  const std::span<float> values(floats, dim());
  InitialRow(spec_, seed_, key, values);
  InitSlots(spec_.optimizer, dim(), floats);
  keys_.push_back(key);
  return row;
}

float* Table::Touch(uint64_t key) {
  RowIndex::Entry* entry = index_.FindOrInsert(key);
  if (entry->row() == RowIndex::kNoRow) entry->set_row(Create(key));
  if (entry->generation != generation_) {
    // The image must have the row as it was at the cut.
    if (copying_ != nullptr) KeepForImage(*entry);
    if (entry->generation > accepted_) {
      MUSTER_CHECK(imaged_only_ > 0);
      --imaged_only_;
    }
    changed_.push_back(entry->row());
    entry->generation = generation_;
  }
  return store_.Row(entry->row());
}

void Table::Watch(std::span<const uint64_t> keys, std::span<float* const> rows) {
  const size_t bad = FirstNonFiniteRow(rows, floats_per_row());
  if (bad == rows.size() || !finite_) return;
  finite_ = false;
  const std::span<const float> row(rows[bad], floats_per_row());
  const size_t column = FirstNonFinite(row);
  const std::string place =
      column < dim() ? fmt::format("column {}", column) : "its optimizer's state";
  not_finite_ = fmt::format("table '{}': the row of key {} has {} in {}", spec_.name, keys[bad],
                            row[column], place);
}

size_t Table::Apply(std::span<const uint64_t> keys, std::span<const float> gradients, uint64_t step,
                    WorkLimit* work) {
  const float factor = ScheduleFactor(spec_.schedule, step);
  const uint64_t work_per_row = WorkPerRow();
  std::array<float*, kBatch> rows;
  const auto prefetch_places = [&](size_t from, size_t count) {
    for (const uint64_t key : keys.subspan(from, std::min(count, keys.size() - from))) {
      index_.Prefetch(key);
    }
  };
  size_t begin = 0;
  while (begin < keys.size()) {
    const size_t count = work->Fits(std::min(kBatch, keys.size() - begin), work_per_row);
    const uint64_t rows_before = this->rows();
    index_.Reserve(count);
    if (begin == 0) prefetch_places(0, count);
    for (size_t i = 0; i < count; ++i) {
      rows[i] = Touch(keys[begin + i]);
      PrefetchFloats<CacheLevel::kSecond>(rows[i], floats_per_row());
    }
    prefetch_places(begin + count, kBatch);  // while this batch is computed
    ++version_;
    ApplyRows(spec_.optimizer, factor, dim(), std::span(rows).first(count),
              gradients.data() + begin * dim());
    Watch(keys.subspan(begin, count), std::span(rows).first(count));
    begin += count;
    work->Spend(count * work_per_row + (this->rows() - rows_before) * dim() * kInitialValueWork);
    if (work->spent()) break;
  }
  return begin;
}

size_t Table::Pull(std::span<const uint64_t> keys, std::span<float> values, WorkLimit* work) const {
  const PullGroup group{.table = this, .keys = keys, .values = values};
  const Gathered gathered = Gather({&group, 1}, 0, work);
  MUSTER_CHECK(gathered.status.ok());
  return gathered.group == 1 ? keys.size() : gathered.row;
}

void Table::SetValues(uint64_t key, std::span<const float> values) {
  index_.Reserve(1);
  float* row = Touch(key);
  ++version_;
  std::ranges::copy(values, row);
  InitSlots(spec_.optimizer, dim(), row);
}

void Table::SetRow(uint64_t key, std::span<const float> row) {
  MUSTER_CHECK(row.size() == floats_per_row());
  index_.Reserve(1);
  RowIndex::Entry* entry = index_.FindOrInsert(key);
  if (entry->row() == RowIndex::kNoRow) {
    entry->set_row(store_.Append());
    keys_.push_back(key);
  }
  ++version_;
  float* const floats = store_.Row(entry->row());
  std::ranges::copy(row, floats);
  Watch({&key, 1}, {&floats, 1});
}

void Table::BeginImage(Rows which) {
  MUSTER_CHECK(copying_ == nullptr);
  imaged_only_ += changed_.size();  // now all dirty rows
  imaged_.push_back(std::exchange(changed_, {}));
  ++generation_;
  const auto bound = static_cast<uint32_t>(rows());
  const uint64_t count = which == Rows::kAll ? bound : imaged_only_;
  copying_ = std::make_unique<Copying>(
      Copying{.which = which,
              .image = TableImage(spec_.id, floats_per_row(), bound, count),
              .row = which == Rows::kAll ? 0 : bound,
              .listed = std::nullopt,
              .merged = {}});
  if (imaged_.size() > 1) copying_->listed.emplace(bound);  // the image before was not accepted
}

void Table::KeepForImage(const RowIndex::Entry& entry) {
  const bool in_image = copying_->which == Rows::kAll ? entry.row() < copying_->image.bound()
                                                      : entry.generation > accepted_;
  if (in_image) copying_->image.Add(entry.row(), keys_[entry.row()], store_.Row(entry.row()));
}

void Table::CopyRow(uint32_t row, WorkLimit* work) {
  copying_->image.Add(row, keys_[row], store_.Row(row));
  work->Spend(2 * uint64_t{floats_per_row()} * sizeof(float));
}

bool Table::CopyImage(WorkLimit* work) {
  MUSTER_CHECK(copying_ != nullptr);
  while (copying_->row < copying_->image.bound()) {
    if (work->spent()) return false;
    CopyRow(copying_->row++, work);
  }
  // An image of all rows does not need the lists, but several lists must be merged into one.
  const bool lists = copying_->which == Rows::kDirty || copying_->listed.has_value();
  return !lists || CopyLists(work);
}

bool Table::CopyLists(WorkLimit* work) {
  Copying& copying = *copying_;
  for (; copying.list < imaged_.size(); ++copying.list, copying.position = 0) {
    const RowList& list = imaged_[copying.list];
    while (copying.position < list.size()) {
      if (work->spent()) return false;
      const uint32_t row = list[copying.position++];
      work->Spend(kListWork);
      if (copying.listed.has_value()) {
        if (!copying.listed->Add(row)) continue;
        copying.merged.push_back(row);
      }
      if (copying.which == Rows::kDirty) CopyRow(row, work);
    }
  }
  if (copying.listed.has_value()) {
    for (RowList& list : imaged_) Discard(std::move(list), &garbage_);
    imaged_.clear();
    imaged_.push_back(std::move(copying.merged));
    copying.listed.reset();
    copying.list = imaged_.size();
  }
  return true;
}

RowImage Table::TakeImage() {
  MUSTER_CHECK(copying_ != nullptr);
  return std::exchange(copying_, nullptr)->image.Take();
}

void Table::DropImage() {
  if (copying_ != nullptr) Discard(std::move(copying_), &garbage_);
}

void Table::Accept() {
  MUSTER_CHECK(copying_ == nullptr);
  accepted_ = generation_ - 1;
  for (RowList& list : imaged_) Discard(std::move(list), &garbage_);
  imaged_.clear();
  imaged_only_ = 0;
}

void Table::TakeGarbage(Garbage* garbage) {
  index_.TakeGarbage(garbage);
  std::ranges::move(std::exchange(garbage_, {}), std::back_inserter(*garbage));
}

}  // namespace muster::ps
