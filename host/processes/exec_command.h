#pragma once

#include <sys/types.h>

#include "absl/status/status.h"
#include "host/processes/supervise.h"

namespace muster {

/// Says why the command does not run. The forked child sends it to its parent.
struct ExecError {
  enum What : int { kGroup, kFolder, kCommand };
  int number = 0;  // errno
  What what = kCommand;
};

absl::Status ToStatus(const ExecError& error, const SuperviseOptions& options);

/// Call it in the forked child. It never returns. If the command cannot run, an ExecError is
/// written to `error_fd`.
[[noreturn]] void ExecCommand(const SuperviseOptions& options, int log_fd, int error_fd,
                              pid_t supervisor);

}  // namespace muster
