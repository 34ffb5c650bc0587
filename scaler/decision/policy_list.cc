#include "scaler/decision/policy_list.h"

#include <chrono>
#include <map>
#include <string>

namespace muster::scaler {
namespace {

using Thresholds = std::map<std::string, double>;

double Seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

Thresholds Describe(const PredictedOutOfMemoryPolicy::Options& o) {
  return {{"window_s", Seconds(o.window)},
          {"settle_s", Seconds(o.settle)},
          {"points_min_readings", static_cast<double>(o.points_min)},
          {"span_min_s", Seconds(o.span_min)},
          {"usage_min_of_limit", o.usage_min},
          {"horizon_s", Seconds(o.horizon)},
          {"concordance_min", o.concordance_min},
          {"growth_to_noise_min", o.growth_to_noise_min},
          {"growth_min_of_limit", o.growth_of_limit_min},
          {"new_high", o.new_high},
          {"confirmations_readings", static_cast<double>(o.confirmations)},
          {"factor", o.factor},
          {"gain_min", o.gain_min}};
}

Thresholds Describe(const StragglerOptions& o) {
  return {{"window_s", Seconds(o.window)},
          {"window_max_s", Seconds(o.window_max)},
          {"work_min_units", static_cast<double>(o.work_min)},
          {"settle_s", Seconds(o.settle)},
          {"slow_ratio", o.slow_ratio},
          {"clear_ratio", o.clear_ratio},
          {"alone_ratio", o.alone_ratio},
          {"hold_s", Seconds(o.hold)},
          {"excess_min_us", static_cast<double>(o.excess_min.count())},
          {"history_min_windows", static_cast<double>(o.history_min)},
          {"history_max_windows", static_cast<double>(o.history_max)},
          {"throttled_min_of_time", o.throttled_min},
          {"cpu_factor", o.cpu_factor},
          {"cpu_gain_min", o.cpu_gain_min},
          {"foreign_quota_of_limit", o.foreign_quota},
          {"grace_s", Seconds(o.grace)},
          {"relaunches_max", static_cast<double>(o.relaunches_max)},
          {"forgive_s", Seconds(o.forgive)}};
}

Thresholds Describe(const HangPolicy::Options& o) {
  return {{"silence_min_s", Seconds(o.silence_min)},
          {"times_longest", o.times_longest},
          {"first_silence_min_s", Seconds(o.first_silence_min)},
          {"looping_cores", o.looping_cpus},
          {"alone_factor", o.alone_factor},
          {"dump_grace_s", Seconds(o.dump_grace)}};
}

Thresholds Describe(const WorkerCountPolicy::Options& o) {
  return {{"settle_s", Seconds(o.settle)},
          {"window_s", Seconds(o.window)},
          {"measurements_min", static_cast<double>(o.measurements_min)},
          {"measurements_max", static_cast<double>(o.measurements_max)},
          {"measurement_age_max_s", Seconds(o.measurement_age_max)},
          {"add_min_of_average", o.add_min},
          {"behind_min_of_rate", o.behind_min},
          {"keeps_up_waits_of_time", o.keeps_up},
          {"busy_of_time", o.busy},
          {"remove_max_of_average", o.remove_max},
          {"step_max_workers", static_cast<double>(o.step_max)},
          {"fit_error_max", o.fit_error_max},
          {"remaining_min_s", Seconds(o.remaining_min)},
          {"only_waits_of_time", o.only_waits},
          {"spare_of_worker", o.spare_cpus}};
}

}  // namespace

std::vector<rest::Policy> DescribePolicies(const PolicyOptions& options,
                                           const Arbiter::Options& arbiter) {
  std::vector<rest::Policy> policies;
  const auto add = [&](const char* name, const char* summary, Thresholds thresholds,
                       bool intervenes) {
    const auto own = arbiter.cooldowns.find(name);
    const auto cooldown = own == arbiter.cooldowns.end() ? arbiter.cooldown : own->second;
    policies.push_back({.name = name,
                        .summary = summary,
                        .dry_run = arbiter.dry_run,
                        .cooldown_s = intervenes ? Seconds(cooldown) : 0,
                        .options = std::move(thresholds)});
  };
  add("crash-loop",
      "Starts again what its own program ended; ends the job with the reason when nothing else "
      "happens",
      {{"ends_max", static_cast<double>(options.crash_loop.ends_max)}}, false);
  add("out-of-memory",
      "Starts what was killed at its memory limit again with more; ends the job with the reason "
      "where no more may be had",
      {{"factor", options.out_of_memory.factor},
       {"gain_min", options.out_of_memory.gain_min},
       {"raised_already", options.out_of_memory.raised_already}},
      false);
  add("platform-kill", "Starts what was killed from outside again at the same size, uncharged", {},
      false);
  add("initial-resources",
      "Gives nodes for which the job file names nothing what earlier runs needed, else an even "
      "share of the memory",
      {{"machine_share", options.initial_resources.machine_share},
       {"memory_margin", options.initial_resources.memory_margin},
       {"cpu_margin", options.initial_resources.cpu_margin},
       {"cpus_min_cores", options.initial_resources.cpus_min}},
      false);
  add("predicted-out-of-memory",
      "Raises in place the memory limit of a node that would soon be killed at it",
      Describe(options.predicted_out_of_memory), true);
  add("hang",
      "Writes the stacks of a worker that makes no progress into its log, then starts it again",
      Describe(options.hang), true);
  add("server-straggler",
      "Gives a server that answers slower than its peers more CPU, or starts it again",
      Describe(options.server_straggler), true);
  add("worker-straggler",
      "Gives a worker that computes slower than its peers more CPU, or starts it again",
      Describe(options.worker_straggler), true);
  add("worker-count", "Adds workers while another one pays, removes those that bring nothing",
      Describe(options.worker_count), true);
  return policies;
}

}  // namespace muster::scaler
