#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "host/found_node.h"
#include "host/messages.h"
#include "host/resources.h"
#include "proto/messages/node_role.h"

namespace muster {

/// Whole lines of a node's log, and their place in all that the node ever wrote.
struct LogPiece {
  /// How many bytes of the node's output come before the first line, and before the end of the last
  /// one.
  uint64_t offset = 0;
  uint64_t next_offset = 0;
  /// True if lines before this piece were requested but are no longer kept.
  bool skipped = false;
  std::vector<std::string> lines;
};

struct LogQuestion {
  /// Lines from this byte on. If absent, the last lines.
  std::optional<uint64_t> offset;
  uint32_t lines = 100;
  /// The most bytes of all lines together, and of one line. A longer line comes in pieces.
  uint64_t bytes_max = 1 << 20;
};

}  // namespace muster

namespace muster {

/// The place where the nodes of a run live: this machine, or a cluster. It starts, controls and
/// ends them. A node is identified by its name; its start number identifies one process of it.
///
/// Only the deciding thread uses it, except for ReadLog(). No call waits for a node. Errors name
/// the node.
class NodeHost {
 public:
  /// Nodes continue to run.
  virtual ~NodeHost() = default;

  /// "" if limits on memory and CPU are enforced. Otherwise it says what is missing, why, what is
  /// done instead, and what the user can do about it.
  virtual const std::string& limits_remark() const = 0;
  /// What all nodes together may use here. A figure is 0 if it is not known.
  virtual Resources Capacity() const = 0;
  /// The idle time of all processors, as a running total. None if it is not known.
  virtual std::optional<std::chrono::microseconds> Idle() const = 0;

  /// If nobody would continue the run after this process, the run must not go on; this says why. ""
  /// if somebody would. Once it is not "", it stays so.
  virtual std::string WhyAbandoned() const { return ""; }

  /// The nodes that earlier scalers of this run have left. Their states come as reports. Call it
  /// once, before anything else. Errors: they cannot be listed.
  virtual absl::StatusOr<std::vector<FoundNode>> Find() = 0;
  /// Ends one of the found nodes; its exit is not reported.
  virtual void Discard(const FoundNode& node) = 0;
  /// The exit of a node that died before this host existed. It is SIGKILL, with the facts that are
  /// still known.
  virtual NodeExited DeathOf(const std::string& node, uint32_t start) const = 0;

  /// Starts a node with an empty slot and within the limits, and passes its start number to it
  /// (MUSTER_START). Later failures come as reports. Errors: it was not started. NotBegun() turns
  /// such an error into an exit. Requires: not Has(node).
  virtual absl::Status Start(const StartNode& start) = 0;
  /// Asks the node to end now, and kills it after `timeout`. Does nothing if it does not run.
  virtual void Stop(const std::string& node, std::chrono::milliseconds timeout) = 0;
  virtual void Kill(const std::string& node) = 0;
  /// Changes both limits in place. Errors: NotFound if the node does not run. FailedPrecondition,
  /// and nothing changes, if the memory limit is below its usage, or if there is a new limit on CPU
  /// and CPU cannot be limited. Unimplemented if limits cannot change in place. A host that learns
  /// the result later reports NodeResized.
  virtual absl::Status SetLimits(const std::string& node, const Resources& limits) = 0;
  /// The usage of the present process. Errors: NotFound if it does not run; Unavailable if this
  /// host does not know it.
  virtual absl::StatusOr<NodeUsage> Usage(const std::string& node) = 0;
  /// The usage of one process of the run that this host did not start (its master, its scaler).
  /// Errors: NotFound if there is none; Unimplemented if it runs elsewhere.
  virtual absl::StatusOr<NodeUsage> UsageOfProcess(uint64_t pid) = 0;
  /// Soon writes the stacks of all threads of the node into its log. Errors: NotFound if it does
  /// not run; Unimplemented if this host cannot get stacks.
  virtual absl::Status DumpStacks(const std::string& node) = 0;
  /// The node's exit was reported everywhere and is in the plan, so the host may forget it.
  virtual void Release(const std::string& node) = 0;
  /// True if the node runs, or if its exit was not reported or not released yet.
  virtual bool Has(const std::string& node) const = 0;

  /// This descriptor is readable while there are reports.
  virtual int wake_fd() const = 0;
  /// The reports since the last call, oldest first. If several processes control the nodes, one
  /// after the other, each of them gets a start and an exit once. When the exit of a node is
  /// reported, everything that the node has started is gone. Its pid is 0 if it never ran, or if
  /// the pid is not known.
  virtual std::vector<HostReport> TakeReports() = 0;

  /// Lines of a node's log. NotFound if there are none yet. Any thread may call it. Requires:
  /// `node` is the name of a node, and not of anything else.
  virtual absl::StatusOr<LogPiece> ReadLog(const std::string& node,
                                           const LogQuestion& question) const = 0;
  /// Call it when every node has ended and the run is over. It removes everything that is left of
  /// the run.
  virtual void EndRun() = 0;
};

}  // namespace muster
