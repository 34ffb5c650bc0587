#include "cli/run/scaler_settings.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "job/file/job_fields.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr uint64_t kMemoryUnit = uint64_t{1} << 20;

TEST(ScalerSettingsTest, DefaultsOfTheFileAreThoseOfThePolicies) {
  const PolicyOptions got = PolicyOptionsOf(JobSpec());
  const PolicyOptions own;
  EXPECT_EQ(got.out_of_memory.factor, own.out_of_memory.factor);
  EXPECT_EQ(got.predicted_out_of_memory.factor, own.predicted_out_of_memory.factor);
  EXPECT_EQ(got.predicted_out_of_memory.usage_min, own.predicted_out_of_memory.usage_min);
  EXPECT_EQ(got.predicted_out_of_memory.horizon, own.predicted_out_of_memory.horizon);
  EXPECT_EQ(got.initial_resources.memory_margin, own.initial_resources.memory_margin);
  EXPECT_EQ(got.initial_resources.machine_share, own.initial_resources.machine_share);
  EXPECT_EQ(got.hang.silence_min, own.hang.silence_min);
  EXPECT_EQ(got.hang.first_silence_min, own.hang.first_silence_min);
  EXPECT_EQ(got.crash_loop.ends_max, own.crash_loop.ends_max);
  EXPECT_EQ(got.worker_count.add_min, own.worker_count.add_min);
  EXPECT_EQ(got.worker_count.remove_max, own.worker_count.remove_max);
  EXPECT_EQ(got.worker_count.step_max, own.worker_count.step_max);
  EXPECT_EQ(got.worker_count.window, own.worker_count.window);
  EXPECT_EQ(got.worker_count.remaining_min, own.worker_count.remaining_min);
  const auto same = [](const StragglerOptions& a, const StragglerOptions& b) {
    EXPECT_EQ(a.slow_ratio, b.slow_ratio);
    EXPECT_EQ(a.clear_ratio, b.clear_ratio);
    EXPECT_EQ(a.alone_ratio, b.alone_ratio);
    EXPECT_EQ(a.window, b.window);
    EXPECT_EQ(a.window_max, b.window_max);
    EXPECT_EQ(a.hold, b.hold);
    EXPECT_EQ(a.restarts_max, b.restarts_max);
  };
  same(got.worker_straggler, own.worker_straggler);
  same(got.server_straggler, own.server_straggler);
  const scaler::Arbiter::Options arbiter = ArbiterOptionsOf(JobSpec());
  EXPECT_EQ(arbiter.cooldown, scaler::Arbiter::Options().cooldown);
  EXPECT_EQ(arbiter.interventions_per_hour, scaler::Arbiter::Options().interventions_per_hour);
  EXPECT_FALSE(arbiter.dry_run);
  EXPECT_TRUE(PausedPoliciesOf(JobSpec()).empty());
}

TEST(ScalerSettingsTest, PoliciesThatCanBePausedAreThoseThatThereAre) {
  std::vector<std::string> names;
  for (const auto& policy : scaler::MakePolicies()) names.push_back(policy->name());
  const auto& fields = job_file::JobFields();
  const auto field = std::find_if(fields.begin(), fields.end(), [](const job_file::Field& other) {
    return other.path == "spec.scaler.pausedPolicies";
  });
  ASSERT_NE(field, fields.end());
  EXPECT_THAT(field->choices, ::testing::UnorderedElementsAreArray(names));
}

TEST(ScalerSettingsTest, WhatTheFileSaysIsHandedOn) {
  JobSpec job;
  job.scaler.policies.hang.silence_min = seconds(10);
  job.scaler.policies.worker_straggler.slow_ratio = 1.4;
  job.scaler.policies.worker_straggler.window = seconds(200);
  job.scaler.policies.server_straggler.slow_ratio = 5;
  job.restarts.crash_loop_exits = 9;
  job.scaler.cooldown = seconds(5);
  job.scaler.interventions_per_hour = 0;
  job.scaler.dry_run = true;
  job.scaler.paused_policies = {"hang", "worker-count"};
  const PolicyOptions options = PolicyOptionsOf(job);
  EXPECT_EQ(options.hang.silence_min, seconds(10));
  EXPECT_EQ(options.worker_straggler.slow_ratio, 1.4);
  EXPECT_NEAR(options.worker_straggler.clear_ratio, 1.2, 1e-9) << "below what is slow";
  EXPECT_EQ(options.worker_straggler.window, seconds(200));
  EXPECT_EQ(options.worker_straggler.window_max, seconds(200)) << "not below the window";
  EXPECT_EQ(options.server_straggler.alone_ratio, 5) << "not below what is slow among peers";
  EXPECT_EQ(options.crash_loop.ends_max, 9u);
  EXPECT_EQ(ArbiterOptionsOf(job).cooldown, seconds(5));
  EXPECT_EQ(ArbiterOptionsOf(job).interventions_per_hour, 0u);
  EXPECT_TRUE(ArbiterOptionsOf(job).dry_run);
  EXPECT_THAT(PausedPoliciesOf(job), ElementsAre("hang", "worker-count"));
}

TEST(ScalerSettingsTest, InitialLimitsAreTheLimitsOrElseMoreThanTheRequests) {
  JobSpec job;
  EXPECT_EQ(InitialLimitsOf(job).worker, Resources()) << "a policy looks for some";
  job.ps.replicas = 2;
  job.ps.requests = {.cpu = 1, .memory_bytes = 400 * kMemoryUnit};
  EXPECT_EQ(InitialLimitsOf(job).server, (Resources{.cpus = 0, .memory_bytes = 600 * kMemoryUnit}));
  job.ps.max.memory_bytes = 500 * kMemoryUnit;
  EXPECT_EQ(InitialLimitsOf(job).server.memory_bytes, 500 * kMemoryUnit);
  job.budget.memory_bytes = 999 * kMemoryUnit;
  EXPECT_EQ(InitialLimitsOf(job).server.memory_bytes, 400 * kMemoryUnit);
  job.ps.limits = {.cpu = 2, .memory_bytes = 450 * kMemoryUnit};
  EXPECT_EQ(InitialLimitsOf(job).server, (Resources{.cpus = 2, .memory_bytes = 450 * kMemoryUnit}));
  job.worker.limits.memory_bytes = 64 * kMemoryUnit;
  EXPECT_EQ(KeeperOptionsOf(job).worker_limits.memory_bytes, 64 * kMemoryUnit);
}

TEST(ScalerSettingsTest, TheShapeOfAJob) {
  JobSpec job;
  job.worker.replicas = 3;
  job.ps.requests.cpu = 0.5;
  job.ps.max = {.cpu = 2, .memory_bytes = 900 * kMemoryUnit};
  job.budget.cpu = 6;
  job.snapshot_interval = std::chrono::seconds(7);
  const Resources machine{.cpus = 8, .memory_bytes = 16'000 * kMemoryUnit};
  scaler::JobShape shape = JobShapeOf(job, machine);
  EXPECT_EQ(shape.roles.at(NodeRole::kServer).requested, (Resources{.cpus = 0.5}));
  EXPECT_EQ(shape.roles.at(NodeRole::kServer).min, (Resources{.cpus = 0.5}));
  EXPECT_EQ(shape.roles.at(NodeRole::kServer).max,
            (Resources{.cpus = 2, .memory_bytes = 900 * kMemoryUnit}));
  EXPECT_EQ(shape.roles.at(NodeRole::kWorker).max, Resources());
  EXPECT_EQ(shape.budget, (Resources{.cpus = 6}));
  EXPECT_EQ(shape.machine, machine);
  EXPECT_EQ(shape.snapshot_interval, std::chrono::seconds(7));
  EXPECT_EQ(shape.workers_min, 3u) << "fixed, unless the file says more";
  EXPECT_EQ(shape.workers_max, 3u);
  job.worker.replicas_min = 1;
  job.worker.replicas_max = 8;
  shape = JobShapeOf(job, machine);
  EXPECT_EQ(shape.workers_min, 1u);
  EXPECT_EQ(shape.workers_max, 8u);
  EXPECT_EQ(shape.members_min, 0u);
  job.group = {.global_batch = 64, .members_min = 2, .members_max = 6};
  shape = JobShapeOf(job, machine);
  EXPECT_EQ(shape.members_min, 2u);
  EXPECT_EQ(shape.workers_min, 2u) << "fewer make no step";
  EXPECT_EQ(shape.workers_max, 6u) << "more only wait";
  job.group.members_max = 2;
  EXPECT_EQ(JobShapeOf(job, machine).workers_max, 3u) << "the file begins with so many";
}

TEST(ScalerSettingsTest, WhatTheKeeperIsTold) {
  JobSpec job;
  job.drain_timeout = seconds(7);
  job.leases.duration = seconds(100);
  job.restarts = {
      .crash_loop_exits = 2, .backoff_initial = milliseconds(3), .backoff_max = milliseconds(4)};
  const scaler::KeeperOptions options = KeeperOptionsOf(job);
  EXPECT_EQ(options.drain_timeout, seconds(7));
  EXPECT_EQ(options.worker_lost_max, seconds(200));
  EXPECT_EQ(options.restarts.crash_loop_exits, 2u);
  EXPECT_EQ(options.restarts.backoff_initial, milliseconds(3));
  EXPECT_EQ(options.restarts.backoff_max, milliseconds(4));
}

}  // namespace
}  // namespace muster
