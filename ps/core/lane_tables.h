#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "proto/messages/control.h"
#include "ps/core/lane_state.h"
#include "ps/engine/table.h"
#include "ps/engine/warm_start.h"

namespace muster::ps {

/// A job for a background thread: to fill a table with the rows that it starts from
/// (Table::Filled).
struct FillJob {
  uint64_t id = 0;
  PartitionId partition;
  TableSpec table;
  std::shared_ptr<const WarmStartSource> rows;
};

/// Knows the tables of the job, and which of the lane's partitions have them. A part of
/// OwnedPartitions; only the lane's thread uses it.
///
/// A table that is being filled is not in its partition yet: parts for it get kRetry, and images do
/// not list it. It is added in one step with all its rows, and all of them are dirty. So a chain of
/// images either has all rows of the table, or does not list the table. If the partition was
/// replaced meanwhile, the filled table is dropped.
class LaneTables {
 public:
  /// `lane` must outlive this object.
  explicit LaneTables(LaneState* lane);

  /// See OwnedPartitions.
  void Add(const TableSpec& table);
  void SetWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows);
  std::vector<FillJob> TakeFills();
  /// Takes a filled table. Returns false if its partition is gone.
  bool Filled(const FillJob& job, std::unique_ptr<Table> table);

  /// Gives every table to the slot's new partition. Tables that must be filled come later.
  void GiveAll(Slot* slot);
  /// Forgets the slot's partition, and drops its fills in progress.
  void Drop(const Slot& slot);
  /// The tables for which some partition waits, by ascending id.
  std::vector<TableId> WarmStartsWanted() const;
  /// The values of a row. 0 if the table is not known.
  uint32_t Width(uint32_t table) const { return table < widths_.size() ? widths_[table] : 0; }

 private:
  struct Known {
    TableSpec spec;
    std::shared_ptr<const WarmStartSource>
        warm_start;  // null: no warm start, or it is not loaded yet
    bool waits() const { return !spec.warm_start_directory.empty() && warm_start == nullptr; }
  };
  /// Gives the table to the slot's partition, unless it has to be filled first.
  void Give(const Known& table, Slot* slot);

  LaneState* const lane_;
  std::map<TableId, Known> tables_;
  std::vector<uint32_t> widths_;  // by table id
  std::vector<FillJob> fills_;    // TakeFills returns them
  uint64_t next_fill_ = 1;
  /// By slot: the running fills for its partition, and the ids of their jobs.
  std::vector<std::map<TableId, uint64_t>> under_way_;
};

}  // namespace muster::ps
