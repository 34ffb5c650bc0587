#include <gmock/gmock.h>

#include <string>

#include "job/file/job_file.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A job whose spec has these lines, too.
absl::StatusOr<JobSpec> ParseWith(const std::string& replicas, const std::string& rest) {
  return ParseJobFile(
      "apiVersion: muster/v1\n"
      "kind: TrainingJob\n"
      "metadata: {name: a}\n"
      "spec:\n"
      "  datasets: [{name: d, files: [x]}]\n"
      "  replicaSpecs: {" +
          replicas + "}\n" + rest,
      "job.yaml", "/jobs");
}
const std::string kPlain = "worker: {command: [t]}";

TEST(ScalerFieldsTest, ResourcesAreRead) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      ParseWith("ps: {replicas: 2, resources: {limits: {cpu: 500m, memory: 64Mi}, "
                "max: {cpu: 2, memory: 1Gi}}}, worker: {command: [t], replicas: 2, "
                "minReplicas: 1, maxReplicas: 4}",
                "  budget: {cpu: 6, memory: 4Gi}\n"));
  EXPECT_EQ(job.ps.limits.cpu, 0.5);
  EXPECT_EQ(job.ps.max.cpu, 2);
  EXPECT_EQ(job.ps.max.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(job.worker.replicas_min, 1u);
  EXPECT_EQ(job.worker.replicas_max, 4u);
  EXPECT_EQ(job.budget.cpu, 6);
  EXPECT_EQ(job.budget.memory_bytes, uint64_t{4} << 30);
}

TEST(ScalerFieldsTest, ThresholdsAreRead) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      ParseWith(kPlain,
                "  scaler:\n"
                "    port: 8123\n"
                "    dryRun: true\n"
                "    pausedPolicies: [hang, worker-count]\n"
                "    cooldown: 30s\n"
                "    interventionsPerHour: 3\n"
                "    outOfMemory: {factor: 2.25}\n"
                "    predictedOutOfMemory: {factor: 1.25, usageMin: 0.5, horizon: 2m}\n"
                "    initialResources: {margin: 2, machineShare: 0.5}\n"
                "    workerStraggler: {slowRatio: 3, window: 20s, hold: 0s, restartsMax: 0}\n"
                "    serverStraggler: {slowRatio: 4}\n"
                "    hang: {timeout: 2m, firstTimeout: 1h}\n"
                "    workerCount: {addMin: 0.5, removeMax: 0.1, stepMax: 1, window: 1m, "
                "remainingMin: 0s}\n"));
  const ScalerSpec& scaler = job.scaler;
  EXPECT_EQ(scaler.port, 8123u);
  EXPECT_TRUE(scaler.dry_run);
  EXPECT_THAT(scaler.paused_policies, ElementsAre("hang", "worker-count"));
  EXPECT_EQ(scaler.cooldown, seconds(30));
  EXPECT_EQ(scaler.interventions_per_hour, 3u);
  const PolicyOptions& policies = scaler.policies;
  EXPECT_EQ(policies.out_of_memory.factor, 2.25);
  EXPECT_EQ(policies.predicted_out_of_memory.factor, 1.25);
  EXPECT_EQ(policies.predicted_out_of_memory.usage_min, 0.5);
  EXPECT_EQ(policies.predicted_out_of_memory.horizon, seconds(120));
  EXPECT_EQ(policies.initial_resources.memory_margin, 2);
  EXPECT_EQ(policies.initial_resources.machine_share, 0.5);
  EXPECT_EQ(policies.worker_straggler.slow_ratio, 3);
  EXPECT_EQ(policies.worker_straggler.window, seconds(20));
  EXPECT_EQ(policies.worker_straggler.hold, seconds(0));
  EXPECT_EQ(policies.worker_straggler.restarts_max, 0u);
  EXPECT_EQ(policies.server_straggler.slow_ratio, 4);
  EXPECT_EQ(policies.server_straggler.hold, seconds(8));
  EXPECT_EQ(policies.hang.silence_min, seconds(120));
  EXPECT_EQ(policies.hang.first_silence_min, seconds(3600));
  EXPECT_EQ(policies.worker_count.add_min, 0.5);
  EXPECT_EQ(policies.worker_count.remove_max, 0.1);
  EXPECT_EQ(policies.worker_count.step_max, 1u);
  EXPECT_EQ(policies.worker_count.window, seconds(60));
  EXPECT_EQ(policies.worker_count.remaining_min, seconds(0));
}

TEST(ScalerFieldsTest, TheNameThatAFieldHadInVersion01IsRead) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job, ParseWith(kPlain, "  scaler:\n    workerStraggler: {relaunchesMax: 7}\n"));
  EXPECT_EQ(job.scaler.policies.worker_straggler.restarts_max, 7u);
  EXPECT_THAT(
      ParseWith(kPlain, "  scaler:\n    workerStraggler: {relaunchesMax: 7, restartsMax: 7}\n"),
      testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("given twice")));
}

TEST(ScalerFieldsTest, ErrorsSayFieldValueAndBounds) {
  struct Case {
    std::string replicas;
    std::string rest;
    std::vector<std::string> what;
  };
  const auto worker = [](const std::string& more) {
    return "worker: {command: [t], " + more + "}";
  };
  const auto resources = [&worker](const std::string& more) {
    return worker("resources: {" + more + "}");
  };
  const Case cases[] = {
      {resources("limits: {memory: 8Mi}"),
       "",
       {"spec.replicaSpecs.worker.resources.limits.memory", "8Mi is out of bounds (16Mi to 64Ti)",
        "a job's process cannot start with less"}},
      {resources("limits: {memory: 65Ti}"), "", {"65Ti is out of bounds (16Mi to 64Ti)"}},
      {resources("limits: {cpu: 5m}"), "", {"5m is out of bounds (10m to 4096)"}},
      {resources("requests: {cpu: 2}, limits: {cpu: 1}"),
       "",
       {"resources.limits.cpu", "the limit of 1 cores is less than the request of 2"}},
      {resources("limits: {memory: 2Gi}, max: {memory: 1Gi}"),
       "",
       {"resources.max.memory", "the maximum of 1Gi is less than the limit of 2Gi"}},
      {resources("requests: {memory: 2Gi}, max: {memory: 1Gi}"),
       "",
       {"the maximum of 1Gi is less than the request of 2Gi"}},
      {worker("replicas: 2, minReplicas: 3"),
       "",
       {"worker.minReplicas", "3 is more than spec.replicaSpecs.worker.replicas (2)"}},
      {worker("replicas: 3, maxReplicas: 2"),
       "",
       {"worker.maxReplicas", "2 is less than spec.replicaSpecs.worker.replicas (3)"}},
      {resources("limits: {cpu: 1, memory: 1Gi}") + ", ps: {replicas: 3, resources: {requests: "
                                                    "{cpu: 1, memory: 1Gi}}}",
       "  budget: {cpu: 3900m, memory: 4000Mi}\n",
       {"spec.budget.cpu: 3.9 cores are less than the 4 that",
        "spec.budget.memory: 4000Mi is less "
        "than the 4Gi that"}},
      {kPlain, "  budget: {memory: 1Mi}\n", {"spec.budget.memory", "16Mi to 1024Ti"}},
      {kPlain, "  scaler: {port: 65536}\n", {"spec.scaler.port", "0 to 65535"}},
      {kPlain,
       "  scaler: {outOfMemory: {factor: 1}}\n",
       {"factor: 1 is out of bounds (1.1 to 10)"}},
      {kPlain, "  scaler: {outOfMemory: {factor: much}}\n", {"'much' is not a number like 1.5"}},
      {kPlain,
       "  scaler: {cooldown: 1500ms}\n",
       {"1500ms is not a whole number of seconds (1s to 1h"}},
      {kPlain,
       "  scaler: {pausedPolicies: [hangs]}\n",
       {"spec.scaler.pausedPolicies", "got 'hangs'", "did you mean 'hang'?"}},
      {kPlain, "  scaler: {pausedPolicies: [hang, hang]}\n", {"hang is given twice"}},
      {kPlain, "  scaler: {pausedPolicies: hang}\n", {"expected list of choices", "write [hang]"}},
      {kPlain,
       "  scaler: {hang: {timeout: 10m}}\n",
       {"spec.scaler.hang.firstTimeout: 5m is less than spec.scaler.hang.timeout (10m)"}},
      {kPlain,
       "  scaler: {workerCount: {removeMax: 0.3}}\n",
       {"spec.scaler.workerCount.removeMax: 0.3 is not less than", "addMin (0.3)"}},
  };
  for (const Case& c : cases) {
    const auto parsed = ParseWith(c.replicas, c.rest);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << c.replicas << c.rest;
    for (const std::string& what : c.what) {
      EXPECT_THAT(std::string(Message(parsed.status())), HasSubstr(what)) << c.replicas << c.rest;
    }
  }
}

TEST(ScalerFieldsTest, ABudgetOfJustWhatIsNeededIsEnough) {
  EXPECT_THAT(ParseWith("worker: {command: [t], replicas: 3, resources: {limits: {cpu: 100m}}}, "
                        "ps: {resources: {limits: {cpu: 600m}}}",
                        "  budget: {cpu: 900m}\n"),
              ::muster::testing::IsOk());
}

}  // namespace
}  // namespace muster
