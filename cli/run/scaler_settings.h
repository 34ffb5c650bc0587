#pragma once

#include <set>
#include <string>

#include "job/job_spec.h"
#include "scaler/nodes/node_keeper.h"
#include "scaler/nodes/plan.h"
#include "scaler/policy/arbiter.h"
#include "scaler/policy/policies.h"
#include "scaler/sensor/job_sensor.h"

/// Translates a job file into the scaler's settings; lower layers do not know job files. Pure
/// functions.
namespace muster {

/// The first limits of nodes: those of the file. If there is a request but no limit of memory, the
/// limit is 1.5 times the request (spec.scaler.initialResources.margin), at most the maximum, or
/// the request itself if the budget has no more. CPU then has no limit; processes share it.
scaler::InitialLimits InitialLimitsOf(const JobSpec& job);

scaler::KeeperOptions KeeperOptionsOf(const JobSpec& job);

/// Requests, bounds, budget and worker counts. `machine`: what there is here
/// (host/processes/machine.h). What earlier runs needed is not known here.
scaler::JobShape JobShapeOf(const JobSpec& job, const Resources& machine);

/// Thresholds that follow from others that the file has are made to fit.
PolicyOptions PolicyOptionsOf(const JobSpec& job);
scaler::Arbiter::Options ArbiterOptionsOf(const JobSpec& job);
/// Policies that begin paused, by name.
std::set<std::string> PausedPoliciesOf(const JobSpec& job);

}  // namespace muster
