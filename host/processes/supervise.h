#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

/// The messages on a control connection between `muster supervise` and its controller
/// (SOCK_SEQPACKET, one struct per message, the same machine and program on both ends). Every
/// report is the whole state, so a controller that connects late gets the newest state.
struct SuperviseReport {
  enum Kind : uint32_t { kStarted = 1, kExited = 2, kStarting = 3 };
  uint32_t kind = kStarting;
  int32_t pid = 0;         // of the command; 0: it does not run yet, or could not be executed
  int32_t signal = 0;      // if it exited
  int32_t code = 0;        // if it exited; 127 or 126 if it could not be executed
  int32_t supervisor = 0;  // pid of `muster supervise`
  uint32_t start = 0;      // SuperviseOptions::start
  uint32_t own_kill = 0;   // if it exited: 1 = `muster supervise` killed it for memory
  uint32_t grouped = 0;    // 1 = the command is in the control groups of cgroup_fds, or will be
  uint32_t shortage =
      0;  // if it exited: 1 = not executed, because the machine was short of something
  uint32_t unused = 0;
  uint64_t memory_peak_bytes = 0;   // as far as memory was watched
  uint64_t memory_limit_bytes = 0;  // watched by `muster supervise`; 0 = none
};
struct SuperviseCommand {
  enum Kind : uint32_t { kStop = 1, kKill = 2, kRelease = 3, kLimitMemory = 4, kDumpStacks = 5 };
  uint32_t kind = 0;
  uint32_t timeout_ms = 0;          // for a stop: from SIGTERM to SIGKILL
  uint64_t memory_limit_bytes = 0;  // for a new limit; 0 = none
};

struct SuperviseOptions {
  /// The node, for the log.
  std::string name;
  /// The inherited control socket; -1 = none (started by hand or as a container's entry point).
  int control_fd = -1;
  /// An inherited listening socket in place of a control socket. Several controllers may connect,
  /// one after the other, and the newest one counts. The exit of the command is kept until a
  /// controller sends kRelease. -1 = none.
  int listen_fd = -1;
  /// The start number of the process: 1 for the first start of the node. Reports contain it.
  uint32_t start = 0;
  /// The inherited reading end of a pipe. When no process has the writing end any more, everything
  /// is killed. With such a pipe, the death of the parent has no effect. -1 = none.
  int life_fd = -1;
  /// If true, descendants of the command outlive it: this process is no sub-reaper, and stops and
  /// kills only the command.
  bool keep_descendants = false;
  /// A descriptor (a lock) that stays open until everything is gone. The command does not get it.
  /// -1 = none.
  int held_fd = -1;
  /// The inherited descriptors that the command gets, under the same numbers. All others are
  /// closed.
  std::vector<int> pass_fds;
  /// The control groups that the command enters, inherited (Cgroup::join_fds). If it cannot enter
  /// them, its log says so, and it runs without them.
  std::vector<int> cgroup_fds;
  /// A limit for use without control groups. If the command and its descendants use more, all are
  /// killed. It is checked regularly (MemoryWatch). 0 = not limited. Controllers may change it.
  uint64_t memory_limit_bytes = 0;
  /// The process that started this one; 0 = not checked.
  pid_t parent_pid = 0;
  /// The file for the command's stdout and stderr; "" = they stay as they are.
  std::string log_path;
  uint64_t log_bytes_max = 16 << 20;
  /// A descriptor that gets a copy of everything in the log, such as a container's stdout; -1 =
  /// none. It has no flag: only callers in this process can set it.
  int copy_fd = -1;
  /// The folder in which the command runs; "" = the current one.
  std::string working_directory;
  /// The time from SIGTERM to SIGKILL if a signal tells it to stop.
  std::chrono::milliseconds stop_timeout{10'000};
  /// The command and its arguments. It is looked up in PATH if it has no slash.
  std::vector<std::string> command;
};

/// Runs one command and guarantees that nothing which it started outlives it. The command is killed
/// if the parent dies (even by SIGKILL), if the pipe of `life_fd` is closed, if a controller orders
/// it, if it does not end in time after SIGTERM, or if it uses more memory than
/// `memory_limit_bytes`. Then all its descendants are killed, too, in any session or process group.
/// Start and exit are reported. SIGQUIT writes the stacks of the command into its log, for people
/// who reach no controller (a pod, another machine).
///
/// Returns the last report, that of the exit, also if the command could not be executed. Requires:
/// a process of its own with one thread, because it becomes a sub-reaper and a session leader and
/// blocks signals. If this process itself is killed by SIGKILL, the command dies with it
/// (parent-death signal), and the descendants of the command become children of the nearest
/// sub-reaper above.
SuperviseReport Supervise(const SuperviseOptions& options);

/// The exit code of a process that has supervised a command: that of the command, or 128 + its
/// signal.
inline int ExitCodeOf(const SuperviseReport& exited) {
  return exited.signal != 0 ? 128 + exited.signal : exited.code;
}

/// Parses `supervise --name N [--control-fd FD | --listen-fd FD --node-start N] [--held-fd FD]
/// [--life-fd FD] [--pass-fds FD,...] [--cgroup-fds FD,...] [--memory-limit BYTES] [--parent-pid
/// PID] [--keep-descendants] [--log FILE] [--log-bytes N] [--cwd DIR] [--stop-timeout-ms N] --
/// COMMAND...`, without the verb itself.
absl::StatusOr<SuperviseOptions> ParseSuperviseArguments(const std::vector<std::string>& arguments);

/// The reverse: the arguments after the verb.
std::vector<std::string> SuperviseArguments(const SuperviseOptions& options);

}  // namespace muster
