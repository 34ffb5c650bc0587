#include "cli/scaler_settings.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace muster {
namespace {

using std::chrono::seconds;

/// The file has whole seconds.
seconds Seconds(std::chrono::milliseconds duration) {
  return std::chrono::duration_cast<seconds>(duration);
}

scaler::Resources ToResources(const ResourceSpec& spec) {
  return {.cpus = spec.cpu.value_or(0), .memory_bytes = spec.memory_bytes.value_or(0)};
}

scaler::Resources InitialLimitsOfRole(const ReplicaSpec& role, double margin) {
  scaler::Resources limits = ToResources(role.limits);
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
  // The sum of many may be beyond 64 bits.
  const double all = job.ps.replicas * static_cast<double>(limits.server.memory_bytes) +
                     job.worker.replicas * static_cast<double>(limits.worker.memory_bytes);
  return all <= static_cast<double>(*job.budget.memory_bytes);
}

scaler::RoleShape ToShape(const ReplicaSpec& role) {
  const scaler::Resources requested = ToResources(role.requests);
  return {.requested = requested, .min = requested, .max = ToResources(role.max)};
}

void SetStraggler(const ScalerSpec::Straggler& spec, scaler::StragglerOptions* options) {
  options->slow_ratio = spec.slow_ratio;
  // Well again half way down at the latest; and alone it takes no less than among peers.
  options->clear_ratio = std::min(options->clear_ratio, 1 + (spec.slow_ratio - 1) / 2);
  options->alone_ratio = std::max(options->alone_ratio, spec.slow_ratio);
  options->window = Seconds(spec.window);
  options->window_max = std::max(options->window_max, options->window);
  options->hold = Seconds(spec.hold);
  options->relaunches_max = spec.relaunches_max;
}

}  // namespace

scaler::InitialLimits InitialLimitsOf(const JobSpec& job) {
  const auto with_margin = [&job](double margin) -> scaler::InitialLimits {
    return {.server = InitialLimitsOfRole(job.ps, margin),
            .worker = InitialLimitsOfRole(job.worker, margin)};
  };
  const scaler::InitialLimits limits = with_margin(job.scaler.memory.initial_margin);
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

scaler::JobShape JobShapeOf(const JobSpec& job, const scaler::Resources& machine) {
  scaler::JobShape shape;
  shape.roles = {{NodeRole::kServer, ToShape(job.ps)}, {NodeRole::kWorker, ToShape(job.worker)}};
  shape.budget = ToResources(job.budget);
  shape.machine = machine;
  shape.workers_min = job.worker.replicas_min.value_or(job.worker.replicas);
  shape.workers_max = job.worker.replicas_max.value_or(job.worker.replicas);
  return shape;
}

scaler::PolicyOptions PolicyOptionsOf(const JobSpec& job) {
  scaler::PolicyOptions options;
  const ScalerSpec& spec = job.scaler;
  options.out_of_memory.factor = spec.memory.factor;
  options.predicted_out_of_memory.factor = spec.memory.predicted_factor;
  options.predicted_out_of_memory.usage_min = spec.memory.predicted_usage_min;
  options.predicted_out_of_memory.horizon = Seconds(spec.memory.predicted_horizon);
  options.initial_resources.memory_margin = spec.memory.initial_margin;
  options.initial_resources.machine_share = spec.memory.initial_machine_share;
  SetStraggler(spec.worker_straggler, &options.worker_straggler);
  SetStraggler(spec.server_straggler, &options.server_straggler);
  options.hang.silence_min = Seconds(spec.hang.timeout);
  options.hang.first_silence_min = Seconds(spec.hang.first_timeout);
  options.crash_loop.ends_max = job.restarts.crash_loop_exits;
  options.worker_count.add_min = spec.worker_count.add_min;
  options.worker_count.remove_max = spec.worker_count.remove_max;
  options.worker_count.step_max = spec.worker_count.step_max;
  options.worker_count.window = Seconds(spec.worker_count.window);
  options.worker_count.remaining_min = Seconds(spec.worker_count.remaining_min);
  return options;
}

scaler::Arbiter::Options ArbiterOptionsOf(const JobSpec& job) {
  scaler::Arbiter::Options options;
  options.cooldown = Seconds(job.scaler.cooldown);
  options.interventions_per_hour = job.scaler.interventions_per_hour;
  options.dry_run = job.scaler.dry_run;
  return options;
}

std::set<std::string> PausedPoliciesOf(const JobSpec& job) {
  return {job.scaler.paused_policies.begin(), job.scaler.paused_policies.end()};
}

}  // namespace muster
