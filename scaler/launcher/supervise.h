#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

/// What travels over the control socket (SOCK_SEQPACKET, one struct per message, same machine and
/// same program on both ends) between `muster supervise` and whoever started it.
struct SuperviseReport {
  enum Kind : uint32_t { kStarted = 1, kExited = 2 };
  uint32_t kind = 0;
  int32_t pid = 0;
  int32_t signal = 0;  // of an exit
  int32_t code = 0;    // of an exit; 127 or 126 when the command could not be executed
};
struct SuperviseCommand {
  enum Kind : uint32_t { kStop = 1, kKill = 2 };
  uint32_t kind = 0;
  uint32_t timeout_ms = 0;  // of a stop: from SIGTERM to SIGKILL
};

struct SuperviseOptions {
  /// The node, for the log.
  std::string name;
  /// The control socket, inherited; -1 = none (started by hand or as a container's entry point).
  int control_fd = -1;
  /// A descriptor (a lock) that is kept open until everything is gone, and not passed on; -1 =
  /// none.
  int held_fd = -1;
  /// Who started it; 0 = not checked.
  pid_t parent_pid = 0;
  /// Where the command's stdout and stderr go; "" = they are left alone.
  std::string log_path;
  uint64_t log_bytes_max = 16 << 20;
  /// The folder in which the command runs; "" = the current one.
  std::string working_directory;
  /// From SIGTERM to SIGKILL when it is told to stop by a signal.
  std::chrono::milliseconds stop_timeout{10'000};
  /// The command and its arguments; looked up in PATH when it has no slash.
  std::vector<std::string> command;
};

/// The body of `muster supervise`: runs one command and guarantees that nothing it ever started
/// outlives it. The command is killed when the parent dies (even by SIGKILL), when the parent says
/// so, and when it does not end in time after SIGTERM; whatever then descends from it is killed
/// too, in whatever session or process group. Reports start and exit over the control socket.
///
/// Returns the exit code of the process: the command's, or 128 + its signal. Requires: a process of
/// its own with one thread (it becomes a sub-reaper and a session leader and blocks signals).
/// Should this process itself be killed by SIGKILL, the command dies with it (parent-death signal),
/// and what descends from the command falls to the nearest sub-reaper above, which is `muster run`.
int RunSupervise(const SuperviseOptions& options);

/// Parses `supervise --name N [--control-fd FD] [--held-fd FD] [--parent-pid PID] [--log FILE]
/// [--log-bytes N]
/// [--cwd DIR] [--stop-timeout-ms N] -- COMMAND...`, without the verb itself.
absl::StatusOr<SuperviseOptions> ParseSuperviseArguments(const std::vector<std::string>& arguments);

/// The other way round: what a parent puts after the verb.
std::vector<std::string> SuperviseArguments(const SuperviseOptions& options);

}  // namespace muster
