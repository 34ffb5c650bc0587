#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/messages/control.h"

namespace muster::ps {

/// The master's commands for the partitions of one lane, out of one exchange.
struct LaneCommands {
  /// Of the lane's report that they answer.
  uint64_t sequence = 0;
  std::vector<OwnCommand> owns;
  std::vector<SnapshotCommand> snapshots;
  std::vector<AcceptedSnapshot> accepted;
  /// Null: nothing new.
  std::shared_ptr<const ForgetState> forget;
  /// The answer comes from a new master, which does not know the counters.
  bool new_master = false;
};

/// What one lane contributes to the next exchange.
struct LaneReport {
  /// Of the exchange that it was made for; it may be repeated in later ones.
  uint64_t sequence = 0;
  std::vector<OwnedPartition> owned;
  std::vector<SnapshotReport> snapshots;
  std::vector<MissingReport> missing;
  ServerCounters counters;
  std::vector<PartitionTraffic> traffic;
  /// Tables of which some partition has not the rows that they start from: give SetWarmStart.
  std::vector<TableId> warm_starts_wanted;
  /// Why the last snapshot could not be written, or read; empty: no problem.
  std::string snapshot_error, restore_error;
};

}  // namespace muster::ps
