#pragma once

#include "cli/ask/query_commands.h"

namespace muster::cluster {

/// `muster export` of a job on Kubernetes that runs or has run. A job that runs and has its
/// snapshots on S3 is exported from here. Otherwise a pod with the job's volumes makes the export,
/// and hands it out over a port-forward; it is deleted before this returns. Returns the exit code.
/// Requires: no other thread exists.
int ExportOnCluster(const ExportCommandOptions& options);

}  // namespace muster::cluster
