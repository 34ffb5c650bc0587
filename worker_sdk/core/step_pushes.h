#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "proto/messages/group_control.h"
#include "worker_sdk/core/part_sender.h"

namespace muster::sdk {

/// What a member of a group pushes in one run of a step, which has no lease: which pushes wait for
/// an answer, and the maps under which those in the tables were sent. Pure; not thread-safe.
class StepPushes {
 public:
  using Deliveries = std::set<DeliveryId, std::less<>, PoolAllocator<DeliveryId>>;

  /// Only this run is of use from now on; 0: none is. Returns the pushes of the run before that are
  /// not answered.
  Deliveries Begin(RunNumber run) {
    run_ = run;
    pushed_under_ = RestoreEpoch();
    return std::exchange(outstanding_, {});
  }
  bool Is(RunNumber run) const { return run != RunNumber() && run == run_; }
  RunNumber run() const { return run_; }
  void Add(DeliveryId push) { outstanding_.insert(push); }
  /// Partitions have the parts of a push of this run.
  void Confirm(std::span<const PartAnswer> parts) {
    for (const PartAnswer& part : parts) {
      pushed_under_ = EarlierOf(pushed_under_, part.sent_under);
    }
  }
  void Finished(DeliveryId push) { outstanding_.erase(push); }
  // Rule 12.18.
  bool all_answered() const { return outstanding_.empty(); }
  /// As in HeldSum, of the whole run.
  RestoreEpoch pushed_under() const { return pushed_under_; }

 private:
  RunNumber run_;
  Deliveries outstanding_;
  RestoreEpoch pushed_under_;
};

}  // namespace muster::sdk
