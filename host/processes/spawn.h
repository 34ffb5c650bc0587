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
  /// Added to the launcher's environment for the command only, and not for its supervising process.
  std::map<std::string, std::string> environment;
  std::string working_directory;  // "" = the launcher's own
  /// The slot file, where a worker notes what it computes. It is created anew before each start. ""
  /// = none.
  std::string slot_file;
  /// The only descriptors that the process inherits, under the same numbers.
  std::vector<int> inherited_fds;
  /// What the process starts outlives it: see SuperviseOptions::keep_descendants.
  bool keep_descendants = false;
};

/// The path of this process's program, even if the file was replaced meanwhile. "" if the kernel
/// does not say.
std::string OwnProgram();

/// The file to execute for `program`. If `program` is the path of this process's program, it is the
/// image of this process, even if the file was replaced meanwhile (an upgrade), because all
/// processes of a run must have one version.
std::string ImageOf(const std::string& program);

/// The environment of a process that supervises a command, as "NAME=value". It is this process's
/// environment, and `added` under names that have no meaning for the supervising process. So
/// libraries that a user preloads into nodes, or settings of their allocator, do not affect it.
std::vector<std::string> SupervisorEnvironment(const std::map<std::string, std::string>& added);

/// Call it in the forked child that becomes the command. The variables that SupervisorEnvironment()
/// added get their own names, and replace variables that have them.
void TakeAddedEnvironment();

/// From now on, only the owner may use files and folders that this process makes, whatever the
/// user's umask is. The user's umask is noted in the environment. Requires: one thread.
void KeepFilesPrivate();

/// Call it in the forked child that becomes the command. It restores the user's umask.
void TakeUsersUmask();

/// Starts `program` with `arguments`; the first one is its own name. Of the descriptors that are
/// closed on exec, only `inherited_fds` are passed on; negative ones are ignored. It uses
/// posix_spawn and not fork, because the caller may have threads (gRPC's), and fork handlers of
/// libraries must not run. The error names the program.
absl::StatusOr<pid_t> Spawn(const std::string& program, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment,
                            const std::vector<int>& inherited_fds);

}  // namespace muster
