#include "cli/run/scaler_settings.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace muster {
namespace {

Resources ToResources(const ResourceSpec& spec) {
  return {.cpus = spec.cpu.value_or(0), .memory_bytes = spec.memory_bytes.value_or(0)};
}

Resources InitialLimitsOfRole(const ReplicaSpec& role, double margin) {
  Resources limits = ToResources(role.limits);
  if (limits.memory_bytes == 0 && role.requests.memory_bytes.has_value()) {
    const double wanted = margin * static_cast<double>(*role.requests.memory_bytes);
    limits.memory_bytes = static_cast<uint64_t>(std::llround(wanted));
    if (role.max.memory_bytes.has_value()) {
      limits.memory_bytes = std::min(limits.memory_bytes, *role.max.memory_bytes);
    }
  }
  return limits;
}

bool FitsMemory(const JobSpec& job, const scaler::InitialLimits& limits) {
  if (!job.budget.memory_bytes.has_value()) return true;
  // The sum may be beyond 64 bits.
  const double all = job.ps.replicas * static_cast<double>(limits.server.memory_bytes) +
                     job.worker.replicas * static_cast<double>(limits.worker.memory_bytes);
  return all <= static_cast<double>(*job.budget.memory_bytes);
}

scaler::RoleShape ToShape(const ReplicaSpec& role) {
  const Resources requested = ToResources(role.requests);
  return {.requested = requested, .min = requested, .max = ToResources(role.max)};
}

}  // namespace

scaler::InitialLimits InitialLimitsOf(const JobSpec& job) {
  const auto with_margin = [&job](double margin) -> scaler::InitialLimits {
    return {.server = InitialLimitsOfRole(job.ps, margin),
            .worker = InitialLimitsOfRole(job.worker, margin)};
  };
  const scaler::InitialLimits limits =
      with_margin(job.scaler.policies.initial_resources.memory_margin);
  return FitsMemory(job, limits) ? limits : with_margin(1);
}

scaler::KeeperOptions KeeperOptionsOf(const JobSpec& job) {
  scaler::KeeperOptions options;
  options.restarts = {.crash_loop_exits = job.restarts.crash_loop_exits,
                      .backoff_initial = job.restarts.backoff_initial,
                      .backoff_max = job.restarts.backoff_max};
  options.worker_lost_max = std::max(options.worker_lost_max, 2 * job.leases.duration);
  options.drain_timeout = job.drain_timeout;
  options.worker_limits = InitialLimitsOf(job).worker;
  return options;
}

scaler::JobShape JobShapeOf(const JobSpec& job, const Resources& machine) {
  scaler::JobShape shape;
  shape.roles = {{NodeRole::kServer, ToShape(job.ps)}, {NodeRole::kWorker, ToShape(job.worker)}};
  shape.budget = ToResources(job.budget);
  shape.machine = machine;
  shape.snapshot_interval = job.snapshot_interval;
  shape.workers_min = job.worker.replicas_min.value_or(job.worker.replicas);
  shape.workers_max = job.worker.replicas_max.value_or(job.worker.replicas);
  if (HasGroup(job)) {
    // A group with fewer members makes no step, and further members would only wait. But the job
    // file's number of first workers stays possible.
    const uint32_t first = job.worker.replicas;
    shape.members_min = job.group.members_min;
    shape.workers_min = std::max(shape.workers_min, std::min(job.group.members_min, first));
    shape.workers_max = std::min(shape.workers_max, std::max(GroupMembersMax(job), first));
  }
  return shape;
}

PolicyOptions PolicyOptionsOf(const JobSpec& job) {
  PolicyOptions options = job.scaler.policies;
  options.crash_loop.ends_max = job.restarts.crash_loop_exits;
  options.worker_straggler.Fit();
  options.server_straggler.Fit();
  return options;
}

scaler::Arbiter::Options ArbiterOptionsOf(const JobSpec& job) {
  scaler::Arbiter::Options options;
  options.cooldown = job.scaler.cooldown;
  options.interventions_per_hour = job.scaler.interventions_per_hour;
  options.dry_run = job.scaler.dry_run;
  return options;
}

std::set<std::string> PausedPoliciesOf(const JobSpec& job) {
  return {job.scaler.paused_policies.begin(), job.scaler.paused_policies.end()};
}

}  // namespace muster
