#include "master/core/table_registry.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr size_t kTablesMax = 1'024;
constexpr uint32_t kDimMax = 65'536;
constexpr size_t kTableNameBytesMax = 128;
constexpr size_t kShapeMax = 8;
constexpr uint64_t kElementsMax = uint64_t{1} << 40;

absl::Status CheckTable(const TableSpec& table) {
  const auto bad = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("table {}: {}", ToString(table), what));
  };
  if (table.name.empty() || table.name.size() > kTableNameBytesMax) {
    return bad(fmt::format("its name must have 1 to {} bytes", kTableNameBytesMax));
  }
  if (table.dim == 0 || table.dim > kDimMax) {
    return bad(fmt::format("dim must be in [1, {}]", kDimMax));
  }
  if (table.shape.size() > kShapeMax) {
    return bad(fmt::format("a tensor may have at most {} axes", kShapeMax));
  }
  uint64_t elements = 1;
  for (uint64_t axis : table.shape) {
    if (axis == 0 || axis > kElementsMax / elements) {
      return bad(fmt::format("every axis must be > 0, and all elements together at most {}",
                             kElementsMax));
    }
    elements *= axis;
  }
  if (!std::isfinite(table.initializer.a) || !std::isfinite(table.initializer.b) ||
      !std::isfinite(table.schedule.decay) || !std::isfinite(table.schedule.final_factor)) {
    return bad("initializer and schedule must be finite");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableRegistry::Registered> TableRegistry::Register(const TableSpec& table) {
  MUSTER_RETURN_IF_ERROR(CheckTable(table));
  for (const auto& [id, known] : tables_) {
    if (known.name != table.name) continue;
    TableSpec same = table;
    same.id = id;
    if (!table.warm_start_directory.empty() && table.warm_start_hash.empty()) {
      same.warm_start_hash = known.warm_start_hash;
    }
    if (same == known) return Registered{id, false};
    return absl::AlreadyExistsError(fmt::format(
        "table '{}' is already registered with another specification. Registered: {}. This one: "
        "{}. "
        "All workers of a job must define a table in the same way; a different table needs a name "
        "of its own. To train with another definition from the beginning, choose another "
        "spec.stateDirectory",
        table.name, ToString(known), ToString(same)));
  }
  if (!table.warm_start_directory.empty() && table.warm_start_hash.empty()) {
    return absl::NotFoundError(
        fmt::format("table '{}' is not registered yet; give the hash of the export {}", table.name,
                    table.warm_start_directory));
  }
  if (tables_.size() >= kTablesMax) {
    return absl::ResourceExhaustedError(
        fmt::format("table '{}': a job may have at most {} tables", table.name, kTablesMax));
  }
  const TableId id(tables_.empty() ? 1 : tables_.rbegin()->first.value() + 1);
  TableSpec added = table;
  added.id = id;
  // Servers request the tables above the newest that they know.
  MUSTER_CHECK_MSG(tables_.empty() || tables_.rbegin()->first < id, ToString(id));
  tables_.emplace_hint(tables_.end(), id, added);
  dirty_.push_back(id);
  return Registered{id, true};
}

std::vector<TableSpec> TableRegistry::After(TableId known) const {
  std::vector<TableSpec> tables;
  for (auto it = tables_.upper_bound(known); it != tables_.end(); ++it) {
    tables.push_back(it->second);
  }
  return tables;
}

void TableRegistry::Collect(std::vector<Mutation>* mutations) {
  for (TableId id : dirty_) mutations->push_back(tables_.at(id));
  dirty_.clear();
}

}  // namespace muster
