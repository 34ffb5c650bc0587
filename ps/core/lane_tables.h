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

/// A table to be filled with the rows that it starts from (Table::Filled), by a background thread.
struct FillJob {
  uint64_t id = 0;
  PartitionId partition;
  TableSpec table;
  std::shared_ptr<const WarmStartSource> rows;
};

/// The tables of the job, and which of the lane's partitions have them. A part of OwnedPartitions;
/// only the lane's thread uses it.
///
/// A table that is being filled is not in its partition yet: parts for it get kRetry, and images do
/// not list it. It is added in one step with all rows, and all rows are dirty. So a chain of images
/// either has all rows of the table, or does not list the table. If the partition was replaced
/// meanwhile, the fill is dropped.
class LaneTables {
 public:
  /// `lane` outlives this.
  explicit LaneTables(LaneState* lane);

  /// See OwnedPartitions.
  void Add(const TableSpec& table);
  void SetWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows);
  std::vector<FillJob> TakeFills();
  /// False: the partition that it was for is gone.
  bool Filled(const FillJob& job, std::unique_ptr<Table> table);

  /// The slot's partition is new and gets every table; tables that must be filled come later.
  void GiveAll(Slot* slot);
  /// The slot's partition is dropped, together with its fills in progress.
  void Drop(const Slot& slot);
  /// Tables for which some partition waits, ascending.
  std::vector<TableId> WarmStartsWanted() const;
  /// Floats of a row, 0: the table is not known.
  uint32_t Width(uint32_t table) const { return table < widths_.size() ? widths_[table] : 0; }

 private:
  struct Known {
    TableSpec spec;
    std::shared_ptr<const WarmStartSource> warm_start;  // null: none, or not loaded yet
    bool waits() const { return !spec.warm_start_directory.empty() && warm_start == nullptr; }
  };
  /// Gives the table to the slot's partition, unless it has to be filled first.
  void Give(const Known& table, Slot* slot);

  LaneState* const lane_;
  std::map<TableId, Known> tables_;
  std::vector<uint32_t> widths_;  // by table id
  std::vector<FillJob> fills_;    // to be taken
  uint64_t next_fill_ = 1;
  /// By slot: the running fills for this partition, with the ids of the jobs.
  std::vector<std::map<TableId, uint64_t>> under_way_;
};

}  // namespace muster::ps
