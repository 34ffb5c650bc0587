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

/// A node as its keeper knows it. Decisions and displays use it.
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
  uint64_t pid = 0;  // of the life that runs or just ended; 0: none, or unknown
  Resources limits;  // of the life that runs and later ones
  /// When the newest life started, or when this keeper took it over.
  TimePoint started_at;
  bool seen_running = false;  // by the master, in the newest life
  bool told_to_end = false;   // by us, in the newest life
  bool progressed = false;    // the job made progress while the master saw this life run
  uint32_t exits = 0;         // in a row without progress, before the newest life
  bool no_process = false;    // its start was ordered, and the host has reported no process yet
  NodeWait wait = NodeWait::kNone;  // why it has no process; kNone: it is on its way
  std::string wait_reason;          // the words of the cluster
  TimePoint waits_since;            // since when it waits for this reason
  /// The limits that its newest process ran with. None if it never had a process.
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
/// Who reads a state.
enum class StateReader : uint8_t {
  kPeople,    // they also see drains and partitions; nodes that are not started yet will be soon
  kPolicies,  // they see only the state: a node that will end drains, a finished one has ended
};

/// The state of a node, from what its keeper and the master know. The master learns later than the
/// keeper that a process began or ended. `master` is none if it knows nothing about the newest
/// life. Pure.
NodeState NodeStateOf(const KeptNode& kept, const std::optional<MasterSays>& master,
                      StateReader reader);

}  // namespace muster::scaler
