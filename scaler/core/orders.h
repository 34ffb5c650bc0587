#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "scaler/core/resources.h"

/// What policies and people want of the nodes, for NodeKeeper. Plain values.
///
/// An order that no longer fits (no such node, another life, a worker that leaves) changes nothing.
/// A job that drains takes only what helps it to its snapshots: limits, and a server that is down
/// started again. A job that is over takes none.
namespace muster::scaler {

/// Limits in place, where it runs, and of its later starts.
struct LimitNode {
  std::string node;
  Resources limits;
};

/// A node that runs gets SIGTERM, after the job's drain timeout SIGKILL, and is started again; the
/// exit is no crash. One that has ended already is only excused: its exit counts toward no crash
/// loop (unless `charged`), and it waits no longer than it must.
struct RelaunchNode {
  std::string node;
  std::string why;
  /// Of the coming start; nothing: as they are.
  std::optional<Resources> limits;
  /// Only this life is meant, running or just ended.
  std::optional<uint32_t> only_start;
  bool charged = false;
  /// It is not expected to hear SIGTERM: it is not given the time of a drain.
  bool hangs = false;
};

/// So many workers are to live. More: the lowest numbers that are free, those of finished workers
/// among them, but none that still leaves. Fewer: the highest numbers leave as by EndNode.
struct ScaleWorkers {
  uint32_t workers = 0;  // at most kWorkersMax; more counts as that
};

/// A worker hands over what it has and is not started again; a server has its partitions
/// snapshotted and stays.
struct EndNode {
  std::string node;
};

/// The job cannot go on: the master is asked to end it as failed.
struct FailJob {
  std::string reason;
};

/// The policies that are paused from now on, all of them; for successors.
struct PausePolicies {
  std::set<std::string> policies;
};

using KeeperOrder =
    std::variant<LimitNode, RelaunchNode, ScaleWorkers, EndNode, FailJob, PausePolicies>;

}  // namespace muster::scaler
