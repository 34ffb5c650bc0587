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
  /// What was asked for is not kept any more: lines before this piece are missing.
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

/// Where the nodes of a run live: it starts them, keeps hold of them, and ends them. It is this
/// machine, or a cluster. A node is known by its name; its start number says which life is meant.
///
/// Belongs to the deciding thread, but for ReadLog(). No call waits for a node; errors name it.
class NodeHost {
 public:
  /// Nodes run on.
  virtual ~NodeHost() = default;

  /// "": limits on memory and CPU are enforced. Else what is missing, why, what is done instead,
  /// and what people can do about it.
  virtual const std::string& limits_remark() const = 0;
  /// All that nodes may use here together; 0 of a figure: not known.
  virtual Resources Capacity() const = 0;
  /// How long the processors have had nothing to do, a running total summed over them. Nothing: not
  /// known.
  virtual std::optional<std::chrono::microseconds> Idle() const = 0;

  /// What earlier scalers of this run left; what it knows of those comes as reports. To be called
  /// once, before anything else. Errors: it cannot be asked for.
  virtual absl::StatusOr<std::vector<FoundNode>> Find() = 0;
  /// Ends one of those found, whose exit nobody wants to hear.
  virtual void Discard(const FoundNode& node) = 0;
  /// The exit of a node that died unseen, before this host was there: by SIGKILL, with what is left
  /// to be known.
  virtual NodeExited DeathOf(const std::string& node, uint32_t start) const = 0;

  /// Starts a node, with an empty slot, within the limits; it is told its start number
  /// (MUSTER_START). What fails later comes as a report. Errors: it was not begun (NotBegun() makes
  /// an exit of that). Requires: not Has(node).
  virtual absl::Status Start(const StartNode& start) = 0;
  /// Asks it to end now, and kills it after `timeout`. Nothing happens when it does not run.
  virtual void Stop(const std::string& node, std::chrono::milliseconds timeout) = 0;
  virtual void Kill(const std::string& node) = 0;
  /// In place, both limits. Errors: NotFound when it does not run; FailedPrecondition, and nothing
  /// is changed, for a memory limit below what it uses, and for another limit on CPU than before
  /// where CPU cannot be limited; Unimplemented where limits do not change in place.
  virtual absl::Status SetLimits(const std::string& node, const Resources& limits) = 0;
  /// Of the present life. Errors: NotFound when it does not run; Unavailable when nothing can be
  /// told yet.
  virtual absl::StatusOr<NodeUsage> Usage(const std::string& node) = 0;
  /// The stacks of all its threads go into its log soon. Errors: NotFound when it does not run;
  /// Unimplemented where they cannot be had.
  virtual absl::Status DumpStacks(const std::string& node) = 0;
  /// Its exit was heard by everybody, and is in the plan: nobody needs to remember it.
  virtual void Release(const std::string& node) = 0;
  /// It runs, or its exit was not heard, or is not released.
  virtual bool Has(const std::string& node) const = 0;

  /// Readable when there are reports.
  virtual int wake_fd() const = 0;
  /// Those that came, oldest first. A start and an exit are told once to each caller in a row. By
  /// the exit of a node all is gone that it had started; its pid is 0 when it never ran, or is not
  /// known.
  virtual std::vector<HostReport> TakeReports() = 0;

  /// Lines of a node's log. NotFound: there is none yet. May be called on any thread. Requires:
  /// `node` is the name of a node, not of anything else.
  virtual absl::StatusOr<LogPiece> ReadLog(const std::string& node,
                                           const LogQuestion& question) const = 0;
  /// Every node has ended and the run is over: nothing of it is to be left here.
  virtual void EndRun() = 0;
};

}  // namespace muster
