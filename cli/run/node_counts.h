#pragma once

#include <cstdint>
#include <optional>

#include "proto/messages/node_role.h"
#include "proto/status/job_status.h"

/// Numbers of nodes for the progress of a run. Pure.
namespace muster {

/// How many nodes of this role have a process, as far as the master knows.
uint32_t CountRunning(const JobStatus& status, NodeRole role);
/// How often nodes of this role were restarted in this run.
uint32_t CountRestarts(const JobStatus& status, NodeRole role);

/// The number of workers that the job should have. `planned` comes from the plan of this run's
/// scaler. Without a plan, it is `replicas` of the job file until that many were seen, and then the
/// number of those that were not drained. A restarted master does not know who was drained, but the
/// plan does.
uint32_t WorkersWanted(std::optional<uint32_t> planned, const JobStatus* status, uint32_t replicas);

}  // namespace muster
