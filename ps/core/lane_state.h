#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proto/messages/control.h"
#include "proto/wire/frame.h"
#include "ps/engine/garbage.h"
#include "ps/engine/partition.h"

namespace muster::ps {

/// A partition that is being built from its snapshot.
struct Load {
  uint64_t id = 0;
  Manifest manifest;
  bool started = false;
  TimePoint not_before{};
  /// Why the newest attempt failed; empty: none has.
  std::string error;
};

/// One of the partitions that may live on a lane. If it is served, `partition` is set. If it is
/// loading, `load` is set. Otherwise another server has it, or none. Never both.
struct Slot {
  PartitionId id;
  size_t index = 0;
  OwnerEpoch epoch;  // of the served or loading state
  std::unique_ptr<Partition> partition;
  std::optional<Load> load;
  uint64_t state = 0;  // the number of this state among all states that the lane has served

  bool HasState() const { return partition != nullptr || load.has_value(); }
};

/// State that the parts of OwnedPartitions share: the lane's partitions, and collections to which
/// every part adds. Not thread-safe: only the lane's thread uses it.
class LaneState {
 public:
  struct Options {
    uint32_t partition_count = 0;
    uint32_t lane = 0;
    uint32_t lane_count = 1;
  };
  explicit LaneState(const Options& options);

  /// Null: the partition belongs to another lane, or there is none of this number.
  Slot* Find(PartitionId partition);
  std::vector<Slot>& slots() { return slots_; }
  /// Checks a worker's part before it gets to its partition: kOk if the partition serves that
  /// epoch.
  wire::PartCode Admit(uint32_t partition, uint64_t owner_epoch);

  ServerCounters counters;
  /// True if there is news that no report contains yet.
  bool news = false;
  /// Memory that takes long to free.
  Garbage garbage;

 private:
  const Options options_;
  std::vector<Slot> slots_;  // partition P at P / lane_count
};

}  // namespace muster::ps
