#pragma once

#include <sys/types.h>

#include "absl/status/status.h"
#include "host/processes/supervise.h"

namespace muster {

/// Why the command does not run, from the forked child to its parent.
struct ExecError {
  enum What : int { kGroup, kFolder, kCommand };
  int number = 0;  // errno
  What what = kCommand;
};

absl::Status ToStatus(const ExecError& error, const SuperviseOptions& options);

/// Runs in the forked child: never returns. `error_fd` takes an ExecError when it cannot run.
[[noreturn]] void ExecCommand(const SuperviseOptions& options, int log_fd, int error_fd,
                              pid_t supervisor);

}  // namespace muster
