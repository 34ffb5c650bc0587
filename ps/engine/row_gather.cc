#include "ps/engine/row_gather.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ps/engine/initializer.h"
#include "ps/engine/prefetch.h"
#include "ps/engine/table.h"
#include "ps/engine/work_costs.h"

namespace muster::ps {

/// One gather. Keys pass through three stages. Each stage works some rows behind the one before:
/// prefetch the places in the index, find the rows and prefetch them, copy the values. Tables are
/// prefetched some groups before the first stage.
class RowGather {
 public:
  RowGather(std::span<const PullGroup> groups, size_t first_row, WorkLimit* work)
      : groups_(groups), work_(work), at_{.group = 0, .row = first_row, .status = {}} {
    next_ = {0, first_row};
  }

  Gathered Run() {
    for (; at_.group < groups_.size(); ++at_.group, at_.row = 0) {
      const PullGroup& group = groups_[at_.group];
      if (!group.goes_on && work_->spent()) break;
      if (at_.row < group.keys.size() && !FindRows(group)) break;
      work_->Spend(group.more_work);
    }
    while (copied_ < found_) CopyOldest();
    return at_;
  }

 private:
  /// A row that was found and prefetched.
  struct Pending {
    const float* row;
    float* out;
    size_t floats;
  };
  /// How many keys lie between the stages. A power of two.
  static constexpr size_t kAhead = 32;
  static constexpr size_t kTablesAhead = 16;

  /// Returns false if the group is not finished: at_ has the error, or the limit is spent.
  bool FindRows(const PullGroup& group) {
    const Table* const table = group.table;
    if (table == nullptr) {
      at_.status = absl::NotFoundError("the table is not known");
      return false;
    }
    const uint64_t work_per_row = kFindWork + 2 * uint64_t{table->dim()} * sizeof(float);
    while (at_.row < group.keys.size()) {
      if (work_->spent()) return false;
      if (!Check(group)) return false;
      const size_t count =
          work_->Fits(std::min(Table::kBatch, group.keys.size() - at_.row), work_per_row);
      PrefetchPlaces(count);
      uint64_t absent = 0;
      for (size_t end = at_.row + count; at_.row < end; ++at_.row) absent += !Find(group, at_.row);
      work_->Spend(count * work_per_row + absent * table->dim() * kInitialValueWork);
    }
    return true;
  }

  /// Checks the keys that still fit into the work limit. Each key is checked only once.
  bool Check(const PullGroup& group) {
    if (at_.group == checked_.group && at_.row < checked_.row) return true;
    const size_t dim = group.table->dim();
    size_t rows = group.keys.size() - at_.row;
    size_t floats = group.values.size();
    if (floats == group.keys.size() * dim) {
      rows = work_->Fits(rows, dim * sizeof(float));
      floats = rows * dim;
    }
    at_.status = group.table->CheckPull(group.keys.subspan(at_.row, rows), floats);
    checked_ = {at_.group, at_.row + rows};
    return at_.status.ok();
  }

  /// Prefetches the tables of the groups from next_ on.
  void PrefetchTables() {
    for (; tables_ < groups_.size() && tables_ <= next_.group + kTablesAhead; ++tables_) {
      if (groups_[tables_].table != nullptr) groups_[tables_].table->PrefetchForPull();
    }
  }

  /// Prefetches the places of the next `count` keys, and of kAhead keys after them.
  void PrefetchPlaces(size_t count) {
    for (; asked_ < found_or_absent_ + count + kAhead && next_.group < groups_.size();
         ++next_.group, next_.row = 0) {
      PrefetchTables();
      const PullGroup& group = groups_[next_.group];
      if (group.table == nullptr) continue;
      for (; next_.row < group.keys.size(); ++next_.row) {
        if (asked_ == found_or_absent_ + count + kAhead) return;
        group.table->PrefetchPlace(group.keys[next_.row]);
        ++asked_;
      }
    }
  }

  /// Returns false if the row is absent; `values` then has its initial values.
  bool Find(const PullGroup& group, size_t row) {
    const Table& table = *group.table;
    const size_t dim = table.dim();
    const uint64_t key = group.keys[row];
    float* const out = group.values.data() + row * dim;
    ++found_or_absent_;
    const RowIndex::Entry* const entry = table.index_.Find(key);
    if (entry == nullptr) {
      InitialRow(table.spec_, table.seed_, key, {out, dim});
      return false;
    }
    const float* const floats = table.store_.Row(entry->row());
    PrefetchFloats<CacheLevel::kFirst>(floats, dim);
    if (found_ - copied_ == 2 * kAhead) {
      for (size_t i = 0; i < kAhead; ++i) CopyOldest();
    }
    pending_[found_++ % (2 * kAhead)] = {floats, out, dim};
    return true;
  }

  void CopyOldest() {
    const Pending& pending = pending_[copied_++ % (2 * kAhead)];
    std::memcpy(pending.out, pending.row, pending.floats * sizeof(float));
  }

  struct Position {
    size_t group, row;
  };
  const std::span<const PullGroup> groups_;
  WorkLimit* const work_;
  Gathered at_;
  Position next_;                  // the next key whose place is prefetched
  Position checked_{SIZE_MAX, 0};  // the rows of this group before this one are checked
  size_t tables_ = 0;              // the tables of the groups before this one are prefetched
  size_t asked_ = 0;
  size_t found_or_absent_ = 0;
  size_t found_ = 0;
  size_t copied_ = 0;
  std::array<Pending, 2 * kAhead> pending_;
};

Gathered Gather(std::span<const PullGroup> groups, size_t first_row, WorkLimit* work) {
  return RowGather(groups, first_row, work).Run();
}

}  // namespace muster::ps
