#pragma once

#include "cli/ask/query_commands.h"

namespace muster::cluster {

/// `muster export` of a job on Kubernetes that runs or has run. If the job runs and has its
/// snapshots on S3, this process exports it. Otherwise a pod with the job's volumes makes the
/// export and sends it over a port-forward. The pod is deleted before this returns. Returns the
/// exit code. Requires: no other thread exists.
int ExportOnCluster(const ExportCommandOptions& options);

}  // namespace muster::cluster
