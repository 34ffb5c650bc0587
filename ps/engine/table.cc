#include "ps/engine/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/planted_bug.h"
#include "ps/engine/initializer.h"
#include "ps/engine/optimizer.h"
#include "ps/engine/schedule.h"

namespace muster::ps {
namespace {

constexpr size_t kFloatsPerLine = 16;

void PrefetchFloats(const float* floats, size_t count) {
  for (size_t i = 0; i < count; i += kFloatsPerLine) __builtin_prefetch(floats + i);
  // A row need not begin with a line, so its last float may lie in one more.
  __builtin_prefetch(floats + count - 1);
}
void PrefetchFloatsForWrite(const float* floats, size_t count) {
  for (size_t i = 0; i < count; i += kFloatsPerLine) __builtin_prefetch(floats + i, 1);
  __builtin_prefetch(floats + count - 1, 1);
}

/// Beyond this the hardware's own prefetcher has taken over, and ours would push out the batch.
constexpr size_t kPrefetchFloatsMax = 512;

}  // namespace

Table::Table(TableSpec spec, uint64_t seed)
    : spec_(std::move(spec)),
      seed_(seed),
      blocks_(spec_.shape.empty() ? UINT64_MAX : DenseBlockCount(spec_)),
      store_(spec_.dim + SlotFloats(spec_.optimizer, spec_.dim)) {}

uint64_t Table::bytes() const {
  return rows() * (floats_per_row() * sizeof(float) + sizeof(uint64_t)) + index_.bytes() +
         (changed_.capacity() + imaged_.capacity()) * sizeof(uint32_t);
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
        fmt::format("table '{}' has rows of {} floats: {} keys come with {} floats, not {}",
                    spec_.name, dim(), keys.size(), values, keys.size() * dim()));
  }
  if (blocks_ == UINT64_MAX) return absl::OkStatus();
  for (const uint64_t key : keys) {
    if (key >= blocks_) {
      return absl::InvalidArgumentError(fmt::format(
          "block {} of dense table '{}' does not exist: it has {}", key, spec_.name, blocks_));
    }
  }
  return absl::OkStatus();
}

absl::Status Table::Check(std::span<const uint64_t> keys, std::span<const float> gradients) const {
  if (absl::Status status = CheckPull(keys, gradients.size()); !status.ok()) return status;
  if (keys.size() >= RowIndex::kNoRow - rows()) {
    return absl::InvalidArgumentError(fmt::format(
        "table '{}' would have over 2^32 rows in one partition: use more partitions", spec_.name));
  }
  const size_t bad = FirstNonFinite(gradients);
  if (bad == gradients.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("table '{}': the gradient of key {} has {} in column {}; nothing of the part was "
                  "applied",
                  spec_.name, keys[bad / dim()], gradients[bad], bad % dim()));
}

uint32_t Table::Create(uint64_t key) {
  const uint32_t row = store_.Append();
  float* floats = store_.Row(row);
  InitialRow(spec_, MUSTER_PLANTED(kRandomRows) ? row : seed_, key, {floats, dim()});
  if (MUSTER_PLANTED(kRowNotInitialised)) std::fill_n(floats, dim(), 0.0f);
  InitSlots(spec_.optimizer, dim(), floats);
  keys_.push_back(key);
  return row;
}

float* Table::Touch(uint64_t key) {
  RowIndex::Entry* entry = index_.FindOrInsert(key);
  if (entry->row() == RowIndex::kNoRow) entry->set_row(Create(key));
  if (entry->generation != generation_) {
    if (entry->generation > accepted_) --imaged_only_;
    changed_.push_back(entry->row());
    entry->generation = generation_;
  }
  return store_.Row(entry->row());
}

void Table::Apply(std::span<const uint64_t> keys, std::span<const float> gradients, uint64_t step) {
  const float factor = ScheduleFactor(spec_.schedule, step);
  const size_t prefetch_floats = std::min<size_t>(floats_per_row(), kPrefetchFloatsMax);
  std::array<float*, kBatch> rows;
  for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const size_t count = std::min(kBatch, keys.size() - begin);
    index_.Reserve(count);
    for (size_t i = 0; i < count; ++i) index_.Prefetch(keys[begin + i]);
    for (size_t i = 0; i < count; ++i) {
      rows[i] = Touch(keys[begin + i]);
      PrefetchFloatsForWrite(rows[i], prefetch_floats);
    }
    ApplyRows(spec_.optimizer, factor, dim(), std::span(rows).first(count),
              gradients.data() + begin * dim());
  }
}

void Table::Pull(std::span<const uint64_t> keys, std::span<float> values) const {
  const size_t prefetch_floats = std::min<size_t>(dim(), kPrefetchFloatsMax);
  std::array<const float*, kBatch> rows;
  for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const size_t count = std::min(kBatch, keys.size() - begin);
    for (size_t i = 0; i < count; ++i) index_.Prefetch(keys[begin + i]);
    for (size_t i = 0; i < count; ++i) {
      const RowIndex::Entry* entry = index_.Find(keys[begin + i]);
      rows[i] = entry == nullptr ? nullptr : store_.Row(entry->row());
      if (rows[i] != nullptr) PrefetchFloats(rows[i], prefetch_floats);
    }
    for (size_t i = 0; i < count; ++i) {
      const std::span<float> out = values.subspan((begin + i) * dim(), dim());
      if (rows[i] != nullptr) {
        std::memcpy(out.data(), rows[i], out.size_bytes());
      } else {
        InitialRow(spec_, seed_, keys[begin + i], out);
        if (MUSTER_PLANTED(kPullCreates)) {
          const_cast<Table*>(this)->SetValues(keys[begin + i], out);
        }
      }
    }
  }
}

void Table::SetValues(uint64_t key, std::span<const float> values) {
  index_.Reserve(1);
  float* row = Touch(key);
  std::ranges::copy(values, row);
  InitSlots(spec_.optimizer, dim(), row);
}

void Table::SetRow(uint64_t key, std::span<const float> row) {
  index_.Reserve(1);
  RowIndex::Entry* entry = index_.FindOrInsert(key);
  if (entry->row() == RowIndex::kNoRow) {
    entry->set_row(store_.Append());
    keys_.push_back(key);
  }
  std::ranges::copy(row, store_.Row(entry->row()));
}

RowImage Table::Image(Rows which) {
  MUSTER_CHECK(imaged_only_ <= imaged_.size());
  if (imaged_only_ > 0) {  // the image before was not accepted
    for (const uint32_t row : imaged_) {
      if (index_.Find(keys_[row])->generation != generation_) changed_.push_back(row);
    }
  }
  imaged_ = std::exchange(changed_, {});
  imaged_only_ = imaged_.size();
  ++generation_;
  RowImage image{spec_.id, floats_per_row(), {}, {}};
  const size_t count = which == Rows::kAll ? keys_.size() : imaged_.size();
  image.keys.reserve(count);
  image.rows.reserve(count * floats_per_row());
  const auto add = [&](uint32_t row) {
    image.keys.push_back(keys_[row]);
    const float* floats = store_.Row(row);
    image.rows.insert(image.rows.end(), floats, floats + floats_per_row());
  };
  if (which == Rows::kAll) {
    for (uint32_t row = 0; row < keys_.size(); ++row) add(row);
  } else {
    for (const uint32_t row : imaged_) add(row);
  }
  return image;
}

void Table::Accept() {
  accepted_ = generation_ - 1;
  imaged_ = {};
  imaged_only_ = 0;
}

}  // namespace muster::ps
