#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

/// The messages on a control connection (SOCK_SEQPACKET, one struct per message, same machine and
/// same program on both ends) between `muster supervise` and its controller. Every report is the
/// whole state, so a controller that connects late gets the newest one.
struct SuperviseReport {
  enum Kind : uint32_t { kStarted = 1, kExited = 2, kStarting = 3 };
  uint32_t kind = kStarting;
  int32_t pid = 0;         // of the command; 0: it does not run yet, or could not be executed
  int32_t signal = 0;      // of an exit
  int32_t code = 0;        // of an exit; 127 or 126 when the command could not be executed
  int32_t supervisor = 0;  // pid of `muster supervise`
  uint32_t start = 0;      // SuperviseOptions::start
  uint32_t own_kill = 0;   // of an exit: 1 = by `muster supervise`, for memory
  uint32_t grouped = 0;    // 1 = the command is in the control groups of cgroup_fds, or is to be
  uint32_t shortage = 0;   // of an exit: 1 = not executed, for the machine was short of something
  uint32_t unused = 0;
  uint64_t memory_peak_bytes = 0;   // as far as it was watched
  uint64_t memory_limit_bytes = 0;  // that `muster supervise` watches; 0 = none
};
struct SuperviseCommand {
  enum Kind : uint32_t { kStop = 1, kKill = 2, kRelease = 3, kLimitMemory = 4, kDumpStacks = 5 };
  uint32_t kind = 0;
  uint32_t timeout_ms = 0;          // of a stop: from SIGTERM to SIGKILL
  uint64_t memory_limit_bytes = 0;  // of a limit; 0 = none
};

struct SuperviseOptions {
  /// The node, for the log.
  std::string name;
  /// The control socket, inherited; -1 = none (started by hand or as a container's entry point).
  int control_fd = -1;
  /// A listening socket instead of one control socket, inherited. Several controllers may connect
  /// one
  /// after the other; the newest one counts. The exit of the command is kept until a controller
  /// sends kRelease. -1 = none.
  int listen_fd = -1;
  /// The start number of the process: 1 for the first start of the node. Controllers are told.
  uint32_t start = 0;
  /// The reading end of a pipe, inherited. When no process has its writing end any more, everything
  /// is
  /// killed; then the death of the parent has no effect. -1 = none.
  int life_fd = -1;
  /// Descendants of the command outlive it: this process is no sub-reaper, and stops and kills only
  /// the command.
  bool keep_descendants = false;
  /// A descriptor (a lock) that is kept open until everything is gone, and not passed on; -1 =
  /// none.
  int held_fd = -1;
  /// What the command gets, inherited, under the same numbers. Everything else is closed.
  std::vector<int> pass_fds;
  /// The control groups that the command enters, inherited (Cgroup::join_fds). When it cannot, its
  /// log says so, and it runs without.
  std::vector<int> cgroup_fds;
  /// Without control groups: if the command and its descendants use more, all are killed. Checked
  /// regularly (MemoryWatch); 0 = not limited. Controllers may change it.
  uint64_t memory_limit_bytes = 0;
  /// Who started it; 0 = not checked.
  pid_t parent_pid = 0;
  /// Where the command's stdout and stderr go; "" = they are left alone.
  std::string log_path;
  uint64_t log_bytes_max = 16 << 20;
  /// Where a copy of all that goes to the log is written, too (a container's stdout); -1 = nowhere.
  /// Not a flag: for callers in this process.
  int copy_fd = -1;
  /// The folder in which the command runs; "" = the current one.
  std::string working_directory;
  /// From SIGTERM to SIGKILL when it is told to stop by a signal.
  std::chrono::milliseconds stop_timeout{10'000};
  /// The command and its arguments; looked up in PATH when it has no slash.
  std::vector<std::string> command;
};

/// Runs one command and guarantees that nothing which it started outlives it. The command is killed
/// if the parent dies (even by SIGKILL) or the pipe of `life_fd` is closed, if a controller orders
/// it, if it does not end in time after SIGTERM, or if it uses more memory than
/// `memory_limit_bytes`. Then all its descendants are killed, too, in any session or process group.
/// Reports start and exit. SIGQUIT writes the stacks of the command into its log, for people who
/// reach no controller (a pod, another machine).
///
/// Returns the last report: of the exit, also if the command could not be executed. Requires: a
/// process of its own with one thread (it becomes a sub-reaper and a session leader and blocks
/// signals). If this process itself is killed by SIGKILL, the command dies with it (parent-death
/// signal), and the descendants of the command become children of the nearest sub-reaper above.
SuperviseReport Supervise(const SuperviseOptions& options);

/// The exit code of a process that supervised a command: the command's, or 128 + its signal.
inline int ExitCodeOf(const SuperviseReport& exited) {
  return exited.signal != 0 ? 128 + exited.signal : exited.code;
}

/// Parses `supervise --name N [--control-fd FD | --listen-fd FD --node-start N] [--held-fd FD]
/// [--life-fd FD] [--pass-fds FD,...] [--cgroup-fds FD,...] [--memory-limit BYTES] [--parent-pid
/// PID] [--keep-descendants]
/// [--log FILE] [--log-bytes N] [--cwd DIR]
/// [--stop-timeout-ms N] -- COMMAND...`, without the verb itself.
absl::StatusOr<SuperviseOptions> ParseSuperviseArguments(const std::vector<std::string>& arguments);

/// The reverse: the arguments that a parent puts after the verb.
std::vector<std::string> SuperviseArguments(const SuperviseOptions& options);

}  // namespace muster
