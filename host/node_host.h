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

/// Whole lines of a node's log, and where they lie in all that the node ever wrote.
struct LogPiece {
  /// Bytes of the node's output before the first line, and behind the last one.
  uint64_t offset = 0;
  uint64_t next_offset = 0;
  /// True if lines before this piece were requested but are no longer kept.
  bool skipped = false;
  std::vector<std::string> lines;
};

struct LogQuestion {
  /// From this byte on; absent: the last lines.
  std::optional<uint64_t> offset;
  uint32_t lines = 100;
  /// Of the lines together, and of one; a longer line comes in pieces.
  uint64_t bytes_max = 1 << 20;
};

}  // namespace muster

namespace muster {

/// The place where the nodes of a run live: this machine, or a cluster. It starts, controls and
/// ends them. A node is identified by its name; its start number identifies one process of it.
///
/// Only the deciding thread uses it, except for ReadLog(). No call waits for a node; errors name
/// it.
class NodeHost {
 public:
  /// Nodes continue to run.
  virtual ~NodeHost() = default;

  /// "" if limits on memory and CPU are enforced. Otherwise what is missing, why, what is done
  /// instead, and what the user can do about it.
  virtual const std::string& limits_remark() const = 0;
  /// All that nodes may use here together; 0 of a figure: not known.
  virtual Resources Capacity() const = 0;
  /// The idle time of all processors, as a running total. None if it is not known.
  virtual std::optional<std::chrono::microseconds> Idle() const = 0;

  /// Why nobody would continue the run if this process ended, so that it must not go on; "" if
  /// somebody would. Once it is something, it stays so.
  virtual std::string WhyAbandoned() const { return ""; }

  /// The nodes that earlier scalers of this run left; their states come as reports. Call it once,
  /// before anything else. Errors: they cannot be listed.
  virtual absl::StatusOr<std::vector<FoundNode>> Find() = 0;
  /// Ends one of the found nodes; its exit is not reported.
  virtual void Discard(const FoundNode& node) = 0;
  /// The exit of a node that died before this host existed: by SIGKILL, with the facts that are
  /// still
  /// known.
  virtual NodeExited DeathOf(const std::string& node, uint32_t start) const = 0;

  /// Starts a node with an empty slot and within the limits, and passes its start number
  /// (MUSTER_START). Later failures come as reports. Errors: it was not started (NotBegun() turns
  /// that into an exit). Requires: not Has(node).
  virtual absl::Status Start(const StartNode& start) = 0;
  /// Asks it to end now, and kills it after `timeout`. Nothing happens if it does not run.
  virtual void Stop(const std::string& node, std::chrono::milliseconds timeout) = 0;
  virtual void Kill(const std::string& node) = 0;
  /// Changes both limits in place. Errors: NotFound if it does not run; FailedPrecondition, and
  /// nothing is changed, for a memory limit below its usage, or for a new limit on CPU if CPU
  /// cannot be limited; Unimplemented if limits cannot change in place. A host that
  /// learns later what became of them reports NodeResized.
  virtual absl::Status SetLimits(const std::string& node, const Resources& limits) = 0;
  /// The usage of the current process. Errors: NotFound if it does not run; Unavailable if this
  /// host does not know it.
  virtual absl::StatusOr<NodeUsage> Usage(const std::string& node) = 0;
  /// The usage of a process of the run that this host did not start (its master, its scaler)
  /// alone. Errors: NotFound if there is none; Unimplemented if it runs elsewhere.
  virtual absl::StatusOr<NodeUsage> UsageOfProcess(uint64_t pid) = 0;
  /// Soon writes the stacks of all its threads into its log. Errors: NotFound if it does not run;
  /// Unimplemented if this host cannot get stacks.
  virtual absl::Status DumpStacks(const std::string& node) = 0;
  /// Its exit was reported everywhere and is in the plan, so the host may forget it.
  virtual void Release(const std::string& node) = 0;
  /// True if it runs, or if its exit was not reported yet, or not released.
  virtual bool Has(const std::string& node) const = 0;

  /// Readable when there are reports.
  virtual int wake_fd() const = 0;
  /// The reports since the last call, oldest first. Each process that controls the nodes, one after
  /// the other, gets a start and an exit once. When the exit of a node is reported, everything that
  /// it started is gone. Its pid is 0 if it never ran, or if it is not known.
  virtual std::vector<HostReport> TakeReports() = 0;

  /// Lines of a node's log. NotFound: there is none yet. May be called on any thread. Requires:
  /// `node` is the name of a node, not of anything else.
  virtual absl::StatusOr<LogPiece> ReadLog(const std::string& node,
                                           const LogQuestion& question) const = 0;
  /// Every node has ended and the run is over: removes everything that is left of it.
  virtual void EndRun() = 0;
};

}  // namespace muster
