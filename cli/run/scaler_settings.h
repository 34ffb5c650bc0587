#pragma once

#include <set>
#include <string>

#include "job/job_spec.h"
#include "scaler/nodes/node_keeper.h"
#include "scaler/nodes/plan.h"
#include "scaler/policy/arbiter.h"
#include "scaler/policy/policies.h"
#include "scaler/sensor/job_sensor.h"

/// Translates a job file into the scaler's settings, because lower layers do not know job files.
/// Pure functions.
namespace muster {

/// The first limits of nodes: those of the job file. If the file requests memory but sets no limit,
/// the limit is 1.5 times the request (spec.scaler.initialResources.margin), at most the maximum.
/// If the budget has no room for that, it is the request itself. CPU then has no limit, because
/// processes share it.
scaler::InitialLimits InitialLimitsOf(const JobSpec& job);

scaler::KeeperOptions KeeperOptionsOf(const JobSpec& job);

/// Requests, bounds, budget and numbers of workers. `machine` is what this machine has
/// (host/processes/machine.h). It lacks what earlier runs needed.
scaler::JobShape JobShapeOf(const JobSpec& job, const Resources& machine);

/// The thresholds of the job file. Thresholds that depend on them are adapted.
PolicyOptions PolicyOptionsOf(const JobSpec& job);
scaler::Arbiter::Options ArbiterOptionsOf(const JobSpec& job);
/// The names of policies that are paused from the beginning.
std::set<std::string> PausedPoliciesOf(const JobSpec& job);

}  // namespace muster
