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

/// What a scaler must know of its predecessor; written before the orders are carried out. Pure.
namespace muster::scaler {

/// One worker or server.
struct NodePlan {
  enum class State : uint8_t {
    kIdle,      // to be started when it is time
    kRunning,   // start number `starts` was ordered, and the master does not know of its exit
    kFinished,  // not to be started any more, unless more workers are wanted
  };
  /// What is wanted of the life that runs.
  enum class Ending : uint8_t {
    kNone,
    kRestart,  // told to end, to be started again
    kDrain,    // to hand over what it has; a worker then ends and is finished
  };
  NodeRole role = NodeRole::kWorker;
  State state = State::kIdle;
  /// In this run; the number of the newest one.
  uint32_t starts = 0;
  /// In a row without progress.
  uint32_t exits = 0;
  /// Lives in a row that a worker ended by itself without any work.
  uint32_t leaves = 0;
  /// Of the newest start; 0: not heard of yet.
  uint64_t pid = 0;
  /// Of the newest start and later ones.
  Resources limits;
  /// The limits of a running life before the newest change, which may still be refused.
  std::optional<Resources> former_limits;
  /// The limits within which its newest process ran, so it had a place with them. None: it never
  /// had a process.
  std::optional<Resources> placed_limits;
  Ending ending = Ending::kNone;
  friend bool operator==(const NodePlan&, const NodePlan&) = default;
};

struct Plan {
  /// The run that it is of: `muster run` draws a new one, and its nodes start again.
  std::string run_id;
  /// When its first scaler began with it, for people; 0: not known.
  uint64_t began_wall_us = 0;
  /// How many workers are wanted.
  uint32_t workers = 0;
  std::map<std::string, NodePlan> nodes;
  /// Policies that a person has paused.
  std::set<std::string> paused;
  /// Why the job cannot continue; the master may not know of it.
  std::optional<std::string> failure;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// What nodes start with.
struct InitialLimits {
  Resources server;
  Resources worker;
};

/// The plan of a run that begins: `ps-0`, ... and `worker-0`, ..., none started.
Plan NewPlan(const std::string& run_id, uint32_t servers, uint32_t workers,
             const InitialLimits& limits = {});

/// How a new scaler continues with the nodes that it finds.
struct Adoption {
  /// kRunning: it is there, or it is in `died`.
  Plan plan;
  /// Killed together with their supervising process while no scaler ran: SIGKILL is their exit, and
  /// the master has yet to hear of it.
  std::vector<std::string> died;
  /// Already reported, or replaced: they must end.
  std::vector<FoundNode> stale;
};
/// `plan` is the one that was written last, of the same run.
Adoption Adopt(Plan plan, const std::vector<FoundNode>& found);
/// When that plan cannot be read: `plan` is a new one. Workers that live and are not in it were
/// added later, and stay; no start number is used twice. A worker that had left is started again if
/// the job began with it.
Adoption AdoptWithoutPlan(Plan plan, const std::vector<FoundNode>& found);

}  // namespace muster::scaler
