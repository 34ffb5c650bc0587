#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/words/limits.h"
#include "host/found_node.h"
#include "host/node_name.h"
#include "host/resources.h"
#include "proto/messages/node_role.h"

/// What a scaler must know of the scaler before it. It is written before the orders are carried
/// out. Pure.
namespace muster::scaler {

/// One worker or server.
struct NodePlan {
  enum class State : uint8_t {
    kIdle,      // to be started when it is time
    kRunning,   // start number `starts` was ordered, and the master does not know of its exit
    kFinished,  // not to be started any more, unless more workers are wanted
  };
  /// What is planned for the life that runs.
  enum class Ending : uint8_t {
    kNone,
    kRestart,  // told to end, to be started again
    kDrain,    // to hand over; a worker then ends and is finished
  };
  NodeRole role = NodeRole::kWorker;
  State state = State::kIdle;
  /// The number of its newest start in this run.
  uint32_t starts = 0;
  /// Its ends in a row without progress.
  uint32_t exits = 0;
  /// Lives in a row that the worker ended by itself, without having done any work.
  uint32_t leaves = 0;
  /// The process of its newest start; 0 if it is not known yet.
  uint64_t pid = 0;
  /// The limits of its newest start and later ones.
  Resources limits;
  /// The limits of a running life before the newest change. That change may still be refused.
  std::optional<Resources> former_limits;
  /// The limits that its newest process ran with. The cluster had a place for a node with them.
  /// None if it never had a process.
  std::optional<Resources> placed_limits;
  Ending ending = Ending::kNone;
  friend bool operator==(const NodePlan&, const NodePlan&) = default;
};

struct Plan {
  /// The run that this plan belongs to. `muster run` draws a new id for a new run, and the nodes of
  /// that run start again.
  std::string run_id;
  /// When the first scaler of the run began, for people; 0 if it is not known.
  uint64_t began_wall_us = 0;
  /// How many workers are wanted.
  uint32_t workers = 0;
  std::map<std::string, NodePlan> nodes;
  /// The policies that a person has paused.
  std::set<std::string> paused;
  /// Why the job cannot continue. The master may not have heard of it yet.
  std::optional<std::string> failure;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// The limits that nodes start with.
struct InitialLimits {
  Resources server;
  Resources worker;
};

/// The plan of a run that begins. It has `ps-0`, ... and `worker-0`, ..., and none of them is
/// started.
Plan NewPlan(const std::string& run_id, uint32_t servers, uint32_t workers,
             const InitialLimits& limits = {});

/// How a new scaler continues with the nodes that it found.
struct Adoption {
  /// Every node that it calls kRunning is there or is in `died`.
  Plan plan;
  /// These nodes were killed together with the process that supervised them, while no scaler ran.
  /// SIGKILL is their exit, and the master has yet to hear of it.
  std::vector<std::string> died;
  /// The exits of these processes were already reported, or other processes replaced them. They
  /// must end.
  std::vector<FoundNode> stale;
};
/// `plan` is the plan that was written last, in the same run.
Adoption Adopt(Plan plan, const std::vector<FoundNode>& found);
/// For a plan that cannot be read; `plan` is a new one. Living workers that are not in it were
/// added later, and stay. No start number is used twice. A worker that had left is started again if
/// the job began with it.
Adoption AdoptWithoutPlan(Plan plan, const std::vector<FoundNode>& found);

}  // namespace muster::scaler
