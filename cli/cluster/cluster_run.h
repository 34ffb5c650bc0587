#pragma once

#include "cli/run/run_command.h"

namespace muster::cluster {

/// `muster run --on kubernetes`: checks the job file and the rights, makes the job's objects, and
/// follows the job until it ends. The exit code is that of the run, 2 if the user must change
/// something, 3 if the user leaves the job, and 5 if the API server cannot be asked. Requires:
/// called on the main thread before other threads exist.
int RunOnCluster(const RunOptions& options);

}  // namespace muster::cluster
