#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "host/resources.h"
#include "proto/messages/node_place.h"
#include "proto/messages/node_role.h"
#include "proto/messages/node_state.h"

namespace muster::scaler {

/// A node as its keeper knows it, for decisions and displays.
struct KeptNode {
  enum class State : uint8_t {
    kWaiting,    // to be started when it is time
    kRunning,    // from the order to start it
    kReporting,  // it is gone, and the master is being told
    kFinished,   // not started again unless more workers are wanted
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
  bool no_process = false;    // its start was ordered, and the host has told of no process yet
  NodeWait wait = NodeWait::kNone;  // why that is so; kNone: it is on its way
  std::string wait_reason;          // the words of the cluster
  TimePoint waits_since;            // with this wait
  /// The limits within which its newest process ran; none: it never had one.
  std::optional<Resources> placed_limits;

  bool runs() const { return state == State::kRunning || state == State::kDraining; }
  /// True if it runs, or if its end is being reported: then the data of its newest life matter.
  bool has_life() const { return runs() || state == State::kReporting; }
};

/// The master's data about a node's newest life.
struct MasterSays {
  NodeState state = NodeState::kStarting;
  DrainState drain = DrainState::kNone;
  bool serves_all = true;  // a server has restored every partition that it owns
};
/// For whom a state is.
enum class StateReader : uint8_t {
  kPeople,    // they also see drains and partitions; nodes that are not started yet will be soon
  kPolicies,  // they see only the state: a node that will end drains, a finished one has ended
};

/// The state of a node from the data of its keeper and of the master, which learns of a process and
/// of its end later. `master`: none if it has no data about the newest life. Pure.
NodeState NodeStateOf(const KeptNode& kept, const std::optional<MasterSays>& master,
                      StateReader reader);

}  // namespace muster::scaler
