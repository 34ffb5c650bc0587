#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "master/core/durable_state.h"

namespace muster {

/// The parameter tables that workers have registered. The first worker that registers a table
/// defines it for the whole job. A table never changes and is never removed. Pure; not thread-safe.
class TableRegistry {
 public:
  explicit TableRegistry(std::map<TableId, TableSpec> tables) : tables_(std::move(tables)) {}

  /// The table's id, and whether the table is new.
  struct Registered {
    TableId id;
    bool added = false;
  };
  /// As MasterCore::RegisterTable.
  absl::StatusOr<Registered> Register(const TableSpec& table);
  const std::map<TableId, TableSpec>& tables() const { return tables_; }
  /// The tables with an id above `known`, which a server does not know yet.
  std::vector<TableSpec> After(TableId known) const;

  /// Appends what changed since the last call.
  void Collect(std::vector<Mutation>* mutations);

 private:
  std::map<TableId, TableSpec> tables_;
  std::vector<TableId> dirty_;
};

}  // namespace muster
