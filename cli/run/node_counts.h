#pragma once

#include <cstdint>
#include <optional>

#include "proto/messages/node_role.h"
#include "proto/status/job_status.h"

/// Numbers of nodes that the progress of a run shows. Pure.
namespace muster {

/// Of one role: those whose process is there, as far as the master knows.
uint32_t CountRunning(const JobStatus& status, NodeRole role);
/// Restarts of one role, in this run.
uint32_t CountRestarts(const JobStatus& status, NodeRole role);

/// How many workers there are to be. `planned`: as the plan of this run's scaler says; without one
/// as many as the job file says (`replicas`) until all of them have been seen, then those that were
/// not sent away. The master forgets who was sent away when it is started again, the plan does not.
uint32_t WorkersWanted(std::optional<uint32_t> planned, const JobStatus* status, uint32_t replicas);

}  // namespace muster
