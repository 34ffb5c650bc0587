#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/messages/control.h"

namespace muster::ps {

/// The master's commands of one exchange for the partitions of one lane.
struct LaneCommands {
  /// The exchange of the lane's report that these commands answer.
  uint64_t sequence = 0;
  std::vector<OwnCommand> owns;
  std::vector<SnapshotCommand> snapshots;
  std::vector<AcceptedSnapshot> accepted;
  /// Null: nothing new.
  std::shared_ptr<const ForgetState> forget;
  /// The answer comes from a new master, which does not know the counters yet.
  bool new_master = false;
};

/// What one lane contributes to the next exchange.
struct LaneReport {
  /// The exchange for which the report was made. The report may be repeated in later exchanges.
  uint64_t sequence = 0;
  std::vector<OwnedPartition> owned;
  std::vector<SnapshotReport> snapshots;
  std::vector<MissingReport> missing;
  ServerCounters counters;
  std::vector<PartitionTraffic> traffic;
  /// Tables that some partition cannot have yet, because the rows that they start from are missing.
  /// They need a call of SetWarmStart.
  std::vector<TableId> warm_starts_wanted;
  /// Why the last snapshot could not be written or read. Empty if there is no problem.
  std::string snapshot_error, restore_error;
};

}  // namespace muster::ps
