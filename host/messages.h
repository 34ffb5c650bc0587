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
#include "proto/messages/node_role.h"
#include "proto/messages/node_state.h"
#include "proto/messages/slot_file.h"
#include "proto/status/job_state.h"

/// Inputs (events) and outputs (effects) of the two deciders about processes, scaler/nodes and
/// cli/run. Plain values.
namespace muster {

/// What is decided by of the master's status.
struct MasterView {
  JobState state = JobState::kUnknown;
  std::string reason;
  bool unrestorable = false;  // why it is FAILED: snapshots that cannot be read
  uint64_t done_seq = 0;
  uint64_t records_done = 0;  // over all datasets and epochs
  struct Node {
    std::string name;
    NodeState state = NodeState::kStarting;
    StartNumber start;                     // that was told; 0: none
    DrainState drain = DrainState::kNone;  // of this process alone
    uint64_t minibatches = 0;              // that this process of a worker has finished
  };
  std::vector<Node> nodes;
};
/// The job got somewhere between two answers; a replay takes records back, and is no progress.
inline bool HasProgressed(const MasterView& from, const MasterView& to) {
  return to.done_seq > from.done_seq || to.records_done > from.records_done;
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
  /// It never ran, since the machine was short of something (disk, memory, descriptors, processes):
  /// nobody's fault, and it may be different soon.
  bool not_started = false;
};
/// What a host (node_host.h) tells of a node without being asked.
using HostReport = std::variant<NodeStarted, NodeExited>;
/// The master answered a question that was asked at `asked_at`.
struct MasterAnswered {
  MasterView view;
  TimePoint asked_at;
};
struct StopWanted {};  // everything is to end now
struct Tick {};

// Effects.
struct StartNode {
  std::string node;
  NodeRole role = NodeRole::kWorker;
  /// The start number of the process: 1 for the first start of the node in this run. The process
  /// tells the master.
  uint32_t start = 1;
  Resources limits;  // none of master and scaler
};
struct StopNode {
  std::string node;
  std::chrono::milliseconds timeout{0};
};
struct KillNode {
  std::string node;
  std::string why;
};
/// To be told to the master, in order, again and again until it is heard.
struct TellMaster {
  std::string node;
  NodeRole role = NodeRole::kWorker;
  StartNumber start;
  uint64_t pid = 0;     // for people
  bool exited = false;  // else started
  ExitStatus exit;
  uint64_t computing_token = 0;
  uint32_t minibatches_started = 0;
  uint64_t incarnation = 0;  // of a worker's process; 0: it left none behind
  std::string text;
};
struct AskCancel {
  std::string reason;
};
/// For people: a line for the display, or the log.
struct Note {
  std::string text;
  /// To what the user has just asked for: shown even to those who want no progress.
  bool answer = false;
};

/// How `muster master`, `muster ps` and `muster scaler` say that their input is wrong: starting
/// them again is no use.
inline constexpr int kBadInputExit = 2;

/// "the kernel killed it at its limit of 512 MiB": why it was killed for its memory; "" if it was
/// not.
std::string MemoryKillText(const NodeExited& event);
/// The report of an exit. It names a shard only when that was computed alone: a crash among several
/// loops is charged to none of their shards, and the text says so.
TellMaster ExitReport(const NodeExited& event, NodeRole role, uint32_t starts);
/// Why a node that ended `exits` times without progress is given up, for people.
std::string CrashLoopReason(const NodeExited& event, uint32_t exits);
/// Whether what kept a process from being started is a shortage of the machine, which passes.
bool IsShortage(const absl::Status& status);
/// What is decided by when a process could not even be begun: it counts as an exit.
NodeExited NotBegun(const std::string& node, const absl::Status& why);
/// "worker-0 ended (SIGKILL); starting it again in 0.5 s".
std::string RestartNote(const NodeExited& event, std::chrono::milliseconds delay);

/// "10 s", "0.5 s".
std::string InSeconds(std::chrono::milliseconds duration);
/// Every line on a line of its own, four blanks in.
std::string Indented(const std::string& lines);
/// Up to the first line break.
std::string FirstLine(const std::string& text);

}  // namespace muster
