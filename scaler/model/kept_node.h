#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "host/node_role.h"
#include "host/resources.h"

namespace muster::scaler {

/// A node as its keeper knows it, for those who decide and those who show.
struct KeptNode {
  enum class State : uint8_t {
    kWaiting,    // to be started when it is time
    kRunning,    // from the order to start it
    kReporting,  // it is gone, and the master is being told
    kFinished,   // not started any more, unless more workers are wanted
    kDraining,   // runs, and was asked to hand over what it has
  };
  std::string name;
  NodeRole role = NodeRole::kWorker;
  uint32_t starts = 0;  // in this run; the number of the newest one
  State state = State::kWaiting;
  uint64_t pid = 0;  // of the life that runs, or just ended; 0: none, or not heard of yet
  Resources limits;  // of this life and the next, or of the next
  /// Of the newest life; of one that was found: when it was taken over.
  TimePoint started_at;
  bool seen_running = false;  // by the master, in the newest life
  bool told_to_end = false;   // by us, in the newest life
  bool progressed = false;    // the job, while the newest life was seen to run
  uint32_t exits = 0;         // in a row without progress, before the newest life's
};

}  // namespace muster::scaler
