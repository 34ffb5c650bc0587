#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/words/types.h"
#include "host/exit_status.h"
#include "host/resources.h"
#include "proto/messages/node_place.h"
#include "proto/messages/node_role.h"
#include "proto/messages/node_state.h"
#include "proto/messages/slot_file.h"
#include "proto/status/job_state.h"

/// Inputs (events) and outputs (effects) of scaler/nodes and cli/run, which decide about processes.
/// Plain values.
namespace muster {

/// The part of the master's status that decisions need.
struct MasterView {
  JobState state = JobState::kUnknown;
  std::string reason;
  bool unrestorable = false;  // the job FAILED because snapshots cannot be read
  uint64_t done_seq = 0;
  uint64_t records_done = 0;   // in all datasets and epochs
  uint64_t failed_shards = 0;  // the same
  struct Node {
    std::string name;
    NodeState state = NodeState::kStarting;
    StartNumber start;                     // as the master was told; 0: none
    DrainState drain = DrainState::kNone;  // of this process only
    uint64_t minibatches = 0;              // finished by this process of a worker
    NodeWait wait = NodeWait::kNone;       // if the start has no process yet
  };
  std::vector<Node> nodes;
  /// After the job's end, the nodes of other machines that have not heard of it.
  std::vector<std::string> end_unheard_by = {};
};
/// True if the job made progress between two answers. A replay takes records back, and is no
/// progress.
inline bool HasProgressed(const MasterView& from, const MasterView& to) {
  // If a shard has FAILED for good, the job goes on with the next one, which is progress.
  return to.done_seq > from.done_seq || to.records_done > from.records_done ||
         to.failed_shards > from.failed_shards;
}

// Events.
struct NodeStarted {
  std::string node;
  uint64_t pid = 0;
};
struct NodeExited {
  std::string node;
  uint64_t pid = 0;
  ExitStatus exit;
  std::optional<SlotRecord> slot;  // of a worker
  std::string last_words;          // of its log
  MemoryKill memory_kill = MemoryKill::kNone;
  uint64_t memory_peak_bytes = 0;   // of this life; 0: not known
  uint64_t memory_limit_bytes = 0;  // when it ended; 0: none, or not known
  std::string killed_for;           // why the reporter killed it; empty: it did not
  /// The process never ran, because the machine temporarily lacked something (disk, memory,
  /// descriptors, processes). This is no failure of the node.
  bool not_started = false;
  /// If not kNone, the exit is no failure of the node or of the shards that it worked on.
  Disruption disruption = Disruption::kNone;
  std::string disruption_text;  // the words of the cluster; may be empty
};
/// A node that was ordered to start has no process yet. This is reported again when `wait` or
/// `reason` changes.
struct NodeHeld {
  std::string node;
  NodeWait wait = NodeWait::kNone;
  std::string reason;  // the words of the cluster
};
/// The result of NodeHost::SetLimits(), from a host that learns it after the call has returned.
/// kDeferred is reported once, and kDone or kRefused may follow.
struct NodeResized {
  std::string node;
  Resources limits;
  ResizeAnswer answer = ResizeAnswer::kDone;
  std::string reason;  // the words of the cluster
};
/// A report that a host (node_host.h) makes on a node.
using HostReport = std::variant<NodeStarted, NodeExited, NodeHeld, NodeResized>;
/// The master answered a question that was asked at `asked_at`.
struct MasterAnswered {
  MasterView view;
  TimePoint asked_at;
};
struct StopWanted {};  // everything must end now
struct Tick {};

// Effects.
struct StartNode {
  std::string node;
  NodeRole role = NodeRole::kWorker;
  /// The start number of the process: 1 for the first start of the node in this run. The process
  /// tells the master.
  uint32_t start = 1;
  Resources limits;  // master and scaler have none
};
struct StopNode {
  std::string node;
  std::chrono::milliseconds timeout{0};
};
struct KillNode {
  std::string node;
  std::string why;
};
/// A report for the master. Reports are sent in order, and each is repeated until the master
/// answers.
struct TellMaster {
  std::string node;
  NodeRole role = NodeRole::kWorker;
  StartNumber start;
  uint64_t pid = 0;     // for people
  bool exited = false;  // if false, it started
  ExitStatus exit;
  uint64_t computing_token = 0;
  uint32_t minibatches_started = 0;
  uint64_t incarnation = 0;  // of a worker's process; 0: not known
  std::string text;
  std::string host;                           // only for a node that `muster join` runs
  Disruption disruption = Disruption::kNone;  // of an exit
  /// In place of a start or an exit: why the node has no process yet. `text` has the words of the
  /// cluster.
  std::optional<NodeWait> held;
  /// In place of a start or an exit: the result of a change of limits. `text` says why.
  std::optional<ResizeAnswer> resized;
};
struct AskCancel {
  std::string reason;
};
/// A line for people, on the display or in the log.
struct Note {
  std::string text;
  /// True if it answers what the user has just asked for, or says why the run makes no progress. It
  /// is then shown even with --no-progress.
  bool answer = false;
};

/// The exit code of `muster master`, `muster ps` and `muster scaler` for wrong input: a restart
/// does not help.
inline constexpr int kBadInputExit = 2;

/// Why the process was killed for its memory: "the kernel killed it at its limit of 512 MiB". "" if
/// it was not.
std::string MemoryKillText(const NodeExited& event);
/// The report of an exit. It names a shard only if one loop was running. If several loops were
/// running, the crash counts for none of their shards, and the text says so.
TellMaster ExitReport(const NodeExited& event, NodeRole role, uint32_t starts);
/// The reason for giving up a node that ended `exits` times without progress.
std::string CrashLoopReason(const NodeExited& event, uint32_t exits);
/// True if a process could not be started because the machine temporarily lacked something.
bool IsShortage(const absl::Status& status);
/// The event for a process that could not be started. It counts as an exit.
NodeExited NotBegun(const std::string& node, const absl::Status& why);
/// "worker-0 ended (SIGKILL); restarting it in 0.5 s".
std::string RestartNote(const NodeExited& event, std::chrono::milliseconds delay);

/// "10 s", "0.5 s".
std::string InSeconds(std::chrono::milliseconds duration);
/// Puts every line on a line of its own, indented by four blanks.
std::string Indented(const std::string& lines);
/// The text before the first line break.
std::string FirstLine(const std::string& text);

}  // namespace muster
