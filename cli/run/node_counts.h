#pragma once

#include <cstdint>
#include <optional>

#include "proto/messages/node_role.h"
#include "proto/status/job_status.h"

/// Numbers of nodes that the progress of a run shows. Pure.
namespace muster {

/// The nodes of one role whose process exists, as far as the master knows.
uint32_t CountRunning(const JobStatus& status, NodeRole role);
/// Restarts of one role, in this run.
uint32_t CountRestarts(const JobStatus& status, NodeRole role);

/// The number of workers that the job should have. `planned`: from the plan of this run's scaler.
/// Without a plan: `replicas` of the job file until all of them have been seen, then those that
/// were not drained. A restarted master does not know who was drained, but the plan does.
uint32_t WorkersWanted(std::optional<uint32_t> planned, const JobStatus* status, uint32_t replicas);

}  // namespace muster
