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

/// A node that a keeper (node_keeper.h) keeps alive. It is in one of four states. Each state has
/// what is known only during it; the other members live as long as the node. A value.
struct KeeperNode {
  /// The node is started when it is time.
  struct Waiting {
    TimePoint start_at;
    bool excused =
        false;  // its last exit does not count (any more), so no order needs to excuse it
  };
  /// From the order to start it to its exit.
  struct Running {
    bool found =
        false;  // a later scaler found it and has heard nothing yet: it takes no action on it
    bool begun = false;  // the host has reported its process; if found, this is not known yet
    Resources limits;    // that it was started with, or runs with
    NodeWait wait = NodeWait::kNone;  // why it has no process yet
    std::string wait_reason;
    TimePoint waits_since;
    uint64_t progress_at_start = 0;
    bool seen = false;    // by the master
    bool worked = false;  // a worker: it has finished a minibatch
    NodePlan::Ending ending = NodePlan::Ending::kNone;
    bool hangs = false;                 // the order to restart it says so
    std::optional<TimePoint> stop_due;  // the time of SIGKILL, if it was told to end
    struct Lost {
      TimePoint since;
      std::optional<TimePoint> dumped_at;
    };
    std::optional<Lost> lost;  // the master says that it lost the node
    struct Drain {
      std::optional<TimePoint> began;
      std::optional<TimePoint> asked;  // when the master was last asked
      bool shown = false;              // the master's status shows the drain
    };
    Drain drain;

    /// It has no place in the cluster, so there is no process that could act.
    bool waits() const { return !begun && wait != NodeWait::kNone; }
  };
  /// The process is gone, and the keeper is telling the master.
  struct Reporting {
    Running life;  // as it was
    NodeExited exit;
    bool progressed = false;
    bool excused = false;               // an order arrived meanwhile, so the exit does not count
    std::optional<TimePoint> heard_at;  // when the master heard of the exit
  };
  /// The node is not started any more, unless more workers are wanted.
  struct Finished {};
  using State = std::variant<Waiting, Running, Reporting, Finished>;

  KeeperNode(std::string its_name, const RestartPolicy::Options& restarts, const NodePlan& plan);

  template <typename In>
  bool is() const {
    return std::holds_alternative<In>(state);
  }
  /// The life that runs, or whose exit the master is being told. Otherwise nullptr.
  const Running* life() const;
  Running* life() { return const_cast<Running*>(std::as_const(*this).life()); }
  /// True for a worker that is not started again after this life.
  bool leaving() const;
  /// True if the job made progress while the master saw this life run. `now` is the job's progress.
  bool progressed(uint64_t now) const;
  /// What a later scaler needs to know of the node.
  NodePlan plan() const;
  /// The node for decisions and displays. `now` is the job's progress.
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
  RestartPolicy leaves;  // lives of a worker that ended by itself without work of its own
  RestartPolicy
      shortages;  // starts in a row that failed because the machine was short of something
  RestartPolicy disruptions;  // lives in a row that the cluster ended before the job made progress
  State state;
};

}  // namespace muster::scaler
