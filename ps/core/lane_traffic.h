#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/messages/control.h"
#include "ps/core/lane_state.h"
#include "ps/core/request_progress.h"
#include "ps/core/requests.h"

namespace muster::ps {

/// Counts the workers' requests to each of the lane's partitions, and knows which counts are
/// reported. A part of OwnedPartitions; only the lane's thread uses it.
class LaneTraffic {
 public:
  /// `lane` must outlive this object.
  explicit LaneTraffic(LaneState* lane);

  enum class Kind { kPull, kPush };
  /// Counts a part of `keys` rows and `floats` values that was answered with OK.
  void CountPart(const Slot& slot, Kind kind, uint64_t keys, uint64_t floats,
                 RequestProgress* progress);
  /// See OwnedPartitions.
  void CountServed(const ServedRequest& request, const RequestProgress& progress);
  /// Call this when another figure of the partition has changed.
  void Changed(const Slot& slot) { partitions_[slot.index].changed = true; }

  /// The master has answered the exchange `sequence`.
  void Answered(uint64_t sequence);
  /// A new master knows nothing, so all partitions that are served count as changed.
  void NewMaster();
  /// See OwnedPartitions::ReportTraffic.
  std::vector<PartitionTraffic> Report(uint64_t sequence, size_t limit);
  /// The time of all requests that were served.
  std::chrono::nanoseconds service() const { return service_; }

 private:
  using Counted = RequestProgress::Counted;

  LaneState* const lane_;
  std::vector<Counted> partitions_;  // by slot
  size_t next_ = 0;                  // the next report begins with this slot
  std::chrono::nanoseconds service_{0};
};

}  // namespace muster::ps
