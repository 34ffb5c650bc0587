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

/// The workers' requests to each of the lane's partitions, and how much of it is reported. A part
/// of OwnedPartitions; only the lane's thread uses it.
class LaneTraffic {
 public:
  /// `lane` outlives this.
  explicit LaneTraffic(LaneState* lane);

  enum class Kind { kPull, kPush };
  /// A part of `keys` rows and `floats` values was answered OK.
  void CountPart(const Slot& slot, Kind kind, uint64_t keys, uint64_t floats,
                 RequestProgress* progress);
  /// See OwnedPartitions.
  void CountServed(const ServedRequest& request, const RequestProgress& progress);
  /// Something else of the partition's figures has changed.
  void Changed(const Slot& slot) { partitions_[slot.index].changed = true; }

  /// The exchange `sequence` was answered.
  void Answered(uint64_t sequence);
  /// A new master knows nothing: all partitions that are served count as changed.
  void NewMaster();
  /// See OwnedPartitions::ReportTraffic.
  std::vector<PartitionTraffic> Report(uint64_t sequence, size_t limit);
  /// Of all requests that were served.
  std::chrono::nanoseconds service() const { return service_; }

 private:
  using Counted = RequestProgress::Counted;

  LaneState* const lane_;
  std::vector<Counted> partitions_;  // by slot
  size_t next_ = 0;                  // slot with which the next report begins
  std::chrono::nanoseconds service_{0};
};

}  // namespace muster::ps
