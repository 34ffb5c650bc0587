#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "host/messages.h"
#include "host/restart_policy.h"
#include "scaler/model/kept_node.h"
#include "scaler/nodes/plan.h"

namespace muster::scaler {

/// A node in the hands of its keeper (node_keeper.h). What it does is one of four states, and each
/// has what is known then and no longer; the rest is kept over all its lives. A value.
struct KeeperNode {
  /// It is started when it is time.
  struct Waiting {
    TimePoint start_at;
    bool excused =
        false;  // its last exit does not count (any more), so no order needs to excuse it
  };
  /// From the order to start it to its exit.
  struct Running {
    bool found = false;  // found by a successor, and not heard since: no action on it begins
    bool begun = false;  // the host has told of its process; found: not known yet
    Resources limits;    // within which it was started, or runs
    NodeWait wait = NodeWait::kNone;  // why it has no process yet
    std::string wait_reason;
    TimePoint waits_since;
    uint64_t progress_at_start = 0;
    bool seen = false;    // by the master
    bool worked = false;  // a worker: it has finished a minibatch
    NodePlan::Ending ending = NodePlan::Ending::kNone;
    bool hangs = false;                 // as the order to restart it says
    std::optional<TimePoint> stop_due;  // it was told to end; the time of SIGKILL
    struct Lost {
      TimePoint since;
      std::optional<TimePoint> dumped_at;
    };
    std::optional<Lost> lost;  // as the master says
    struct Drain {
      std::optional<TimePoint> began;
      std::optional<TimePoint> asked;  // the last time
      bool shown = false;              // by the master
    };
    Drain drain;

    /// It has no place in the cluster, so there is no process that could do anything.
    bool waits() const { return !begun && wait != NodeWait::kNone; }
  };
  /// It is gone, and the master is being told.
  struct Reporting {
    Running life;  // as it was
    NodeExited exit;
    bool progressed = false;
    bool excused = false;               // an order arrived meanwhile, so the exit does not count
    std::optional<TimePoint> heard_at;  // by the master
  };
  /// It is not started any more, unless more workers are wanted.
  struct Finished {};
  using State = std::variant<Waiting, Running, Reporting, Finished>;

  KeeperNode(std::string its_name, const RestartPolicy::Options& restarts, const NodePlan& plan);

  template <typename In>
  bool is() const {
    return std::holds_alternative<In>(state);
  }
  /// The life that runs, or whose exit is being told; else nullptr.
  const Running* life() const;
  Running* life() { return const_cast<Running*>(std::as_const(*this).life()); }
  /// A worker that is not started again after this life.
  bool leaving() const;
  /// True if the job made progress while the node took part in it. `now` is the job's progress.
  bool progressed(uint64_t now) const;
  /// What a successor needs to know.
  NodePlan plan() const;
  /// For decisions and displays. `now` as above.
  KeptNode Shown(uint64_t now) const;

  std::string name;
  NodeRole role = NodeRole::kWorker;
  uint32_t starts = 0;
  uint64_t pid = 0;  // of the newest start; 0: not heard of yet
  Resources limits;
  std::optional<Resources> former_limits;  // NodePlan::former_limits
  std::optional<Resources> placed_limits;  // NodePlan::placed_limits
  TimePoint started_at;
  RestartPolicy policy;
  RestartPolicy leaves;       // of a worker that leaves by itself, by its own work
  RestartPolicy shortages;    // starts in a row that the machine was too short for
  RestartPolicy disruptions;  // lives in a row that the cluster ended before they brought progress
  State state;
};

}  // namespace muster::scaler
