#pragma once

#include "base/words/types.h"
#include "proto/messages/server_control.h"

/// Records of durable_state.h.
namespace muster {

/// The snapshot of a partition at the end of an epoch whose weights are kept.
struct KeptRecord {
  EpochIndex epoch;
  PartitionId partition;
  Manifest manifest;
  static void Fields(auto& f, auto& s) {
    f(1, "epoch", s.epoch), f(2, "partition", s.partition), f(3, "manifest", s.manifest);
  }
};
/// The weights of the epoch are kept no longer.
struct EraseKept {
  EpochIndex epoch;
};

}  // namespace muster
