#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

/// One process to start: a node of the job, the scaler, or a whole run.
struct NodeCommand {
  std::string name;                  // "worker-0"
  std::vector<std::string> command;  // program and arguments
  /// Added to the launcher's environment, for the command only, not for its supervising process.
  std::map<std::string, std::string> environment;
  std::string working_directory;  // "" = the launcher's own
  /// The slot file, where a worker notes what it computes. It is created again before each start.
  /// "" = none.
  std::string slot_file;
  /// The only descriptors that it gets, under the same numbers.
  std::vector<int> inherited_fds;
  /// What it starts outlives it: SuperviseOptions::keep_descendants.
  bool keep_descendants = false;
};

/// The path of this process's program, also when the file was replaced meanwhile; "" if the kernel
/// does not say.
std::string OwnProgram();

/// The file to execute for `program`: the image of this process if `program` is its path, even if
/// the file was replaced meanwhile (an upgrade): all processes of a run are of one version.
std::string ImageOf(const std::string& program);

/// The environment of a process that supervises a command: this process's environment, and `added`
/// under names that have no meaning for it, as "NAME=value". Libraries that a user preloads into
/// nodes, or settings of their allocator, must not affect the supervising process.
std::vector<std::string> SupervisorEnvironment(const std::map<std::string, std::string>& added);

/// In the forked child that becomes the command: what SupervisorEnvironment() added gets its own
/// names, in place of what this process has under them.
void TakeAddedEnvironment();

/// From now on, this process makes files and folders that their owner alone may use, whatever the
/// user's umask is. It notes the user's umask in the environment. Requires: one thread.
void KeepFilesPrivate();

/// In the forked child that becomes the command: the umask that the user had.
void TakeUsersUmask();

/// Starts `program` with `arguments` (the first is its own name). Of this process's descriptors
/// that are closed on exec, `inherited_fds` alone are passed on, those that are not negative. By
/// posix_spawn rather than fork: the caller may have threads (gRPC's), and fork handlers of
/// libraries must not run. The error names the program.
absl::StatusOr<pid_t> Spawn(const std::string& program, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment,
                            const std::vector<int>& inherited_fds);

}  // namespace muster
