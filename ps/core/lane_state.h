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
  /// Why the newest attempt failed. Empty if no attempt has failed.
  std::string error;
};

/// One of the partitions that may live on a lane. If the lane serves it, `partition` is set. If it
/// is being loaded, `load` is set. Otherwise another server has it, or no server. The two are never
/// set together.
struct Slot {
  PartitionId id;
  size_t index = 0;
  OwnerEpoch epoch;  // of the state that is served or loaded
  std::unique_ptr<Partition> partition;
  std::optional<Load> load;
  uint64_t state = 0;  // number of this state; the lane counts all states that it serves

  bool HasState() const { return partition != nullptr || load.has_value(); }
};

/// The state that the parts of OwnedPartitions share: the lane's partitions, and collections to
/// which every part adds. Not thread-safe: only the lane's thread uses it.
class LaneState {
 public:
  struct Options {
    uint32_t partition_count = 0;
    uint32_t lane = 0;
    uint32_t lane_count = 1;
  };
  explicit LaneState(const Options& options);

  /// Returns null if the partition belongs to another lane, or if no partition has this number.
  Slot* Find(PartitionId partition);
  std::vector<Slot>& slots() { return slots_; }
  /// Checks a worker's part before it gets to its partition. Returns kOk if the lane serves the
  /// partition under that epoch.
  wire::PartCode Admit(uint32_t partition, uint64_t owner_epoch);

  ServerCounters counters;
  /// True if there is news that no report contains yet.
  bool news = false;
  /// Memory that takes long to free.
  Garbage garbage;

 private:
  const Options options_;
  std::vector<Slot> slots_;  // partition P is at index P / lane_count
};

}  // namespace muster::ps
