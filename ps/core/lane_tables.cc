#include "ps/core/lane_tables.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster::ps {

LaneTables::LaneTables(LaneState* lane) : lane_(lane), under_way_(lane->slots().size()) {}

void LaneTables::Add(const TableSpec& table) {
  const auto [known, added] = tables_.try_emplace(table.id, Known{table, nullptr});
  if (!added) return;
  if (widths_.size() <= table.id.value()) widths_.resize(table.id.value() + 1, 0);
  widths_[table.id.value()] = table.dim;
  for (Slot& slot : lane_->slots()) Give(known->second, &slot);
}

void LaneTables::SetWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows) {
  const auto known = tables_.find(table);
  if (known == tables_.end() || !known->second.waits()) return;
  known->second.warm_start = std::move(rows);
  for (Slot& slot : lane_->slots()) Give(known->second, &slot);
}

void LaneTables::Give(const Known& table, Slot* slot) {
  if (slot->partition == nullptr || slot->partition->KnowsTable(table.spec.id)) return;
  if (table.waits()) {
    lane_->news = true;
  } else if (table.warm_start == nullptr) {
    slot->partition->AddTable(table.spec);
  } else if (under_way_[slot->index].try_emplace(table.spec.id, next_fill_).second) {
    fills_.push_back({next_fill_++, slot->id, table.spec, table.warm_start});
  }
}

void LaneTables::GiveAll(Slot* slot) {
  MUSTER_CHECK(under_way_[slot->index].empty());
  for (const auto& [id, table] : tables_) Give(table, slot);
}

void LaneTables::Drop(const Slot& slot) {
  under_way_[slot.index].clear();
}

std::vector<FillJob> LaneTables::TakeFills() {
  return std::exchange(fills_, {});
}

bool LaneTables::Filled(const FillJob& job, std::unique_ptr<Table> table) {
  Slot* const slot = lane_->Find(job.partition);
  MUSTER_CHECK(slot != nullptr);
  std::map<TableId, uint64_t>& fills = under_way_[slot->index];
  const auto fill = fills.find(job.table.id);
  if (fill == fills.end() || fill->second != job.id) {
    Discard(std::move(table), &lane_->garbage);
    return false;
  }
  fills.erase(fill);
  MUSTER_CHECK(slot->partition != nullptr);
  slot->partition->AdoptTable(std::move(table));
  lane_->news = true;
  return true;
}

std::vector<TableId> LaneTables::WarmStartsWanted() const {
  std::vector<TableId> wanted;
  for (const auto& [id, table] : tables_) {
    if (table.waits() && std::ranges::any_of(lane_->slots(), [id = id](const Slot& slot) {
          return slot.partition != nullptr && !slot.partition->KnowsTable(id);
        })) {
      wanted.push_back(id);
    }
  }
  return wanted;
}

}  // namespace muster::ps
