#include "cli/cluster/job_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "tests/support/status_matchers.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

json Job(const std::string& condition = "") {
  json job = {{"metadata", {{"name", "ads"}, {"uid", "u1"}}}, {"spec", {{"parallelism", 1}}}};
  if (!condition.empty()) {
    job["status"]["conditions"] = json::array(
        {{{"type", condition}, {"status", "True"}, {"message", "words of Kubernetes"}}});
  }
  return job;
}

json Pod(const std::string& name, const std::string& phase, const std::string& created,
         json state = nullptr) {
  json pod = {{"metadata", {{"name", name}, {"creationTimestamp", created}}},
              {"spec", {{"containers", json::array({{{"name", "muster"}}})}}},
              {"status", {{"phase", phase}}}};
  if (!state.is_null()) {
    pod["spec"]["nodeName"] = "n1";
    pod["status"]["containerStatuses"] =
        json::array({{{"name", "muster"}, {"state", std::move(state)}}});
  }
  return pod;
}

json Running() {
  return {{"running", json::object()}};
}

json Ended(int code, const std::string& message) {
  return {{"terminated", {{"exitCode", code}, {"reason", "Error"}, {"message", message}}}};
}

TEST(JobLook, ThereIsNone) {
  EXPECT_EQ(ReadJobLook(nullptr, {}).stage, JobStage::kAbsent);
}

TEST(JobLook, WaitsForAQueueOrForItsPod) {
  json suspended = Job();
  suspended["spec"]["suspend"] = true;
  EXPECT_EQ(ReadJobLook(suspended, {}).stage, JobStage::kWaiting);
  EXPECT_THAT(ReadJobLook(suspended, {}).why, HasSubstr("queue"));
  EXPECT_EQ(ReadJobLook(Job(), {}).stage, JobStage::kWaiting);
}

TEST(JobLook, PendingHasTheSchedulersReason) {
  json pod = Pod("ads-a", "Pending", "2026-01-01T00:00:00Z");
  pod["status"]["conditions"] = json::array({{{"type", "PodScheduled"},
                                              {"status", "False"},
                                              {"reason", "Unschedulable"},
                                              {"message", "0/3 nodes are available"}}});
  const JobLook look = ReadJobLook(Job(), {pod});
  EXPECT_EQ(look.stage, JobStage::kPending);
  EXPECT_EQ(look.pod, "ads-a");
  EXPECT_FALSE(look.is_stuck);
  EXPECT_THAT(Describe(look), HasSubstr("0/3 nodes are available"));
}

TEST(JobLook, AnImageThatIsMissingStaysSo) {
  const JobLook look = ReadJobLook(
      Job(), {Pod("ads-a", "Pending", "2026-01-01T00:00:00Z",
                  {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}})});
  EXPECT_EQ(look.stage, JobStage::kPending);
  EXPECT_TRUE(look.is_stuck);
  EXPECT_THAT(look.why, HasSubstr("no such image"));
}

TEST(JobLook, TheNewestPodThatIsNotOverCounts) {
  const JobLook look =
      ReadJobLook(Job(), {Pod("ads-b", "Running", "2026-01-02T00:00:00Z", Running()),
                          Pod("ads-c", "Failed", "2026-01-03T00:00:00Z", Ended(137, "")),
                          Pod("ads-a", "Failed", "2026-01-01T00:00:00Z", Ended(137, ""))});
  EXPECT_EQ(look.stage, JobStage::kRunning);
  EXPECT_EQ(look.pod, "ads-b");
  EXPECT_EQ(look.uid, "u1");
}

TEST(JobLook, APodThatIsBeingDeletedCannotBeAsked) {
  json pod = Pod("ads-a", "Running", "2026-01-01T00:00:00Z", Running());
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:10Z";
  EXPECT_EQ(ReadJobLook(Job(), {pod}).stage, JobStage::kPending);
}

TEST(JobLook, TheRunSaysHowItEnded) {
  const JobLook look = ReadJobLook(
      Job("Failed"),
      {Pod("ads-a", "Failed", "2026-01-01T00:00:00Z",
           Ended(3, R"({"outcome":"drained","exit_code":3,"reason":"asked by ann"})"))});
  EXPECT_EQ(look.stage, JobStage::kEnded);
  EXPECT_EQ(Describe(look), "ended: drained (exit code 3): asked by ann");
  EXPECT_EQ(ExitCodeOf(look), 3);
}

TEST(JobLook, APodThatLeavesSaysWhyInWords) {
  const JobLook look = ReadJobLook(
      Job(), {Pod("ads-a", "Failed", "2026-01-01T00:00:00Z",
                  Ended(1, R"({"outcome":"left","exit_code":1,"reason":"told to leave"})"))});
  EXPECT_EQ(look.stage, JobStage::kPending);
  EXPECT_THAT(look.why, StartsWith("failed: exited (exit code 1): told to leave. Kubernetes "));
}

TEST(JobLook, AfterADeathItSaysWhenKubernetesGoesOn) {
  json job = Job();
  job["status"]["failed"] = 2;
  json dead = Pod("ads-a", "Failed", "2026-01-01T00:00:00Z", Ended(137, ""));
  dead["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] =
      "2026-01-01T01:00:00Z";
  EXPECT_THAT(Describe(ReadJobLook(job, {dead})), HasSubstr("at about 2026-01-01T01:00:20Z"));
  // Its pod was deleted, and Kubernetes has counted it.
  EXPECT_THAT(Describe(ReadJobLook(job, {})), HasSubstr("20 s"));
  EXPECT_THAT(Describe(ReadJobLook(Job(), {})), Not(HasSubstr("20 s")));
}

TEST(JobLook, APodThatMovedSaysWhy) {
  json evicted = Pod("ads-a", "Failed", "2026-01-01T00:00:00Z");
  evicted["status"]["reason"] = "Evicted";
  evicted["status"]["message"] = "The node was low on resource: memory.";
  const json next = Pod("ads-b", "Running", "2026-01-01T01:00:00Z", Running());
  const JobLook look = ReadJobLook(Job(), {next, evicted});
  EXPECT_EQ(look.pod, "ads-b");
  EXPECT_THAT(look.former, AllOf(StartsWith("ads-a: "), HasSubstr("evicted by its node"),
                                 HasSubstr("low on resource: memory")));
  EXPECT_EQ(ReadJobLook(Job(), {next}).former, "");
}

TEST(JobLook, AnImageWithoutMuster) {
  const auto why = [](int code) {
    json state = Ended(code, "");
    return ReadJobLook(Job(), {Pod("ads-a", "Failed", "2026-01-01T00:00:00Z", state)}).why;
  };
  EXPECT_THAT(why(127), HasSubstr("is the program `muster` in the image?"));
  EXPECT_THAT(why(1), Not(HasSubstr("in the image?")));
}

json ClaimEvent(const std::string& reason, const std::string& at, const std::string& message,
                const std::string& claim = "ads-state") {
  return {{"involvedObject", {{"kind", "PersistentVolumeClaim"}, {"name", claim}}},
          {"reason", reason},
          {"lastTimestamp", at},
          {"message", message}};
}

TEST(JobLook, AClaimWithoutAVolumeSaysWhy) {
  json claim = {{"metadata", {{"name", "ads-state"}}}, {"status", {{"phase", "Pending"}}}};
  const std::vector<json> events = {
      ClaimEvent("ProvisioningFailed", "2026-01-01T00:00:01Z", "an older reason"),
      ClaimEvent("ProvisioningFailed", "2026-01-01T00:00:02Z", "only ReadWriteOnce"),
      ClaimEvent("WaitForFirstConsumer", "2026-01-01T00:00:03Z", "as always"),
      ClaimEvent("ProvisioningFailed", "2026-01-01T00:00:04Z", "of another", "other")};
  EXPECT_EQ(UnboundClaim(claim, events), "the claim ads-state gets no volume: only ReadWriteOnce");
  EXPECT_EQ(UnboundClaim(claim, {events[2]}), "");
  claim["status"]["phase"] = "Bound";
  EXPECT_EQ(UnboundClaim(claim, events), "");
}

TEST(JobLook, ClaimsOfAPod) {
  json pod = Pod("ads-a", "Pending", "2026-01-01T00:00:00Z");
  pod["spec"]["volumes"] =
      json::array({{{"name", "a"}, {"persistentVolumeClaim", {{"claimName", "ads-state"}}}},
                   {{"name", "b"}, {"emptyDir", json::object()}}});
  EXPECT_THAT(ClaimsOf(pod), ElementsAre("ads-state"));
}

TEST(JobLook, AnEndWithoutWordsOfTheRun) {
  const JobLook look = ReadJobLook(Job("Failed"), {});
  EXPECT_EQ(Describe(look), "ended: failed: words of Kubernetes");
  EXPECT_EQ(ExitCodeOf(look), 1);
  EXPECT_EQ(ExitCodeOf(ReadJobLook(Job("Complete"), {})), 0);
  const JobLook killed = ReadJobLook(
      Job("Failed"), {Pod("ads-a", "Failed", "2026-01-01T00:00:00Z", Ended(1, "no JSON"))});
  EXPECT_EQ(killed.exit_code, 1);
  EXPECT_EQ(killed.outcome, "failed");
}

TEST(JobLook, VerbsSayWhyTheyCannotAsk) {
  const auto said = [](const JobLook& look) {
    return CheckRuns("ads", "the namespace team of https://a:1", look);
  };
  EXPECT_TRUE(said({.stage = JobStage::kRunning}).ok());
  EXPECT_THAT(said({}), testing::StatusIs(absl::StatusCode::kNotFound,
                                          HasSubstr("no job ads in the namespace team")));
  EXPECT_THAT(said({.stage = JobStage::kPending, .why = "no node has room"}),
              testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no node has room")));
  EXPECT_THAT(
      said({.stage = JobStage::kEnded, .outcome = "failed", .exit_code = 1}),
      testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("has ended: failed (exit code 1)")));
  EXPECT_THAT(said({.stage = JobStage::kEnded, .outcome = "failed"}).message(),
              HasSubstr("muster run JOB.yaml"));
  EXPECT_THAT(said({.stage = JobStage::kEnded, .outcome = "succeeded"}).message(),
              AllOf(HasSubstr("muster export"), Not(HasSubstr("muster run"))));
  EXPECT_THAT(said({.stage = JobStage::kPending, .is_stuck = true}).message(),
              HasSubstr("`kubectl delete job ads`"));
}

TEST(JobLookTest, AJobOfTheSameNameIsAnotherOne) {
  const JobLook ended{.stage = JobStage::kEnded, .uid = "a", .outcome = "succeeded"};
  EXPECT_EQ(LookOfJob("a", ended).stage, JobStage::kEnded);
  EXPECT_EQ(LookOfJob("a", JobLook{}).stage, JobStage::kAbsent);
  const JobLook other = LookOfJob("b", ended);
  EXPECT_EQ(other.stage, JobStage::kReplaced);
  EXPECT_NE(ExitCodeOf(other), kExitSucceeded);
  EXPECT_THAT(CheckRuns("ads", "here", other),
              testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("replaced")));
}

}  // namespace
}  // namespace muster::cluster
