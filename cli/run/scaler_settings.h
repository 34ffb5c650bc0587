#pragma once

#include <set>
#include <string>

#include "job/job_spec.h"
#include "scaler/nodes/node_keeper.h"
#include "scaler/nodes/plan.h"
#include "scaler/policy/arbiter.h"
#include "scaler/policy/policies.h"
#include "scaler/sensor/job_sensor.h"

/// What a job file says, in the scaler's terms: nothing below knows a job file. Pure functions.
namespace muster {

/// What nodes start with: the limits of the file. Without a limit of memory, but with a request, it
/// is 1.5 times that (spec.scaler.initialResources.margin), at most the maximum, and the request
/// alone where the budget has no more. Of CPU there is no limit then: machines share it out.
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
