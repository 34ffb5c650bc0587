#include "cli/cluster/cluster_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "cli/cluster/follow.h"
#include "cli/cluster/link_files.h"
#include "cli/cluster/make_objects.h"
#include "cli/manifests/job_secrets.h"
#include "cli/show/output.h"
#include "kubernetes/manifests/objects.h"
#include "security/identity.h"
#include "tests/cli/cluster/fake_cluster.h"
#include "tests/support/status_matchers.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kJobFile[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: ads}
spec:
  datasets:
    - {name: train, files: [/data/a.txt], minibatchSize: 64}
  replicaSpecs:
    ps: {replicas: 1}
    worker: {replicas: 1, command: [/opt/trainer]}
)";

json Ending(const std::string& condition) {
  return {{"conditions", json::array({{{"type", condition}, {"status", "True"}}})}};
}

/// Of the pods, and of the authority.
std::vector<json> SecretsMadeBefore(std::chrono::hours age) {
  JobSpec spec;
  spec.name = "ads";
  const absl::StatusOr<kubernetes::JobSecrets> secrets =
      MakeJobSecrets("ads", "team", SystemClock().Wall() - age);
  EXPECT_THAT(secrets, testing::IsOk());
  return kubernetes::SecretsOf(spec, {.ns = "team", .image = {}, .job_file = {}}, *secrets);
}

struct ClusterRun : ::testing::Test {
  ClusterRun() {
    options.job_file = folder.path() + "/job.yaml";
    EXPECT_THAT(WriteFileAtomically(options.job_file, kJobFile), testing::IsOk());
    options.cluster = fake.Target();
    options.image = "registry/ads:1";
    options.progress = false;
  }
  int Run() { return RunOnCluster(options); }

  testing::TempDir folder;
  FakeCluster fake;
  RunOptions options;
};

TEST_F(ClusterRun, MissingRightsAreSaidBeforeAnythingIsMade) {
  fake.Deny("create pods/portforward");
  fake.Deny("patch roles");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("patch roles, create pods/portforward"));
  EXPECT_THAT(fake.changes(), IsEmpty());
}

TEST_F(ClusterRun, TheJobsRoleHasNoRightThatItsMakerLacks) {
  options.detach = true;
  fake.Deny("patch pods/resize");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("patch pods/resize"));
  const std::string rules = fake.At("roles/ads-muster")["rules"].dump();
  EXPECT_THAT(rules, AllOf(HasSubstr("pods/log"), Not(HasSubstr("pods/resize"))));
}

TEST_F(ClusterRun, ADryRunMakesNothing) {
  options.dry_run = true;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("Job ads"));
  EXPECT_THAT(fake.changes(), IsEmpty());
}

TEST_F(ClusterRun, AJobFileThatIsWrongForKubernetes) {
  options.image.clear();
  EXPECT_EQ(Run(), kExitUsage);
  EXPECT_THAT(fake.changes(), IsEmpty());
}

TEST_F(ClusterRun, MakesEverythingOnce) {
  options.detach = true;
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_THAT(fake.changes(), Contains("PATCH configmaps/ads-muster"));
  EXPECT_EQ(fake.changes().back(), "POST jobs/ads");
  EXPECT_EQ(fake.At("jobs/ads")["spec"]["ttlSecondsAfterFinished"], 7 * 24 * 3600);
  const json secret = fake.At("secrets/ads-muster");
  ASSERT_TRUE(secret.is_object());
  EXPECT_FALSE(secret["data"].contains("ca.key"));
  const json job = fake.At("jobs/ads");
  // The job waits for its pod, so it is left as it is.
  const size_t before = fake.changes().size();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("is there already"), Not(HasSubstr("another job file"))));
  EXPECT_EQ(fake.changes().size(), before);
  EXPECT_EQ(fake.At("jobs/ads"), job);
}

TEST_F(ClusterRun, AJobThatLivesIsNotTakenForOneOfAnotherFile) {
  options.detach = true;
  EXPECT_EQ(Run(), kExitSucceeded);
  const size_t before = fake.changes().size();
  for (const bool detach : {true, false}) {
    options.detach = detach;
    options.image = "registry/ads:2";
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Run(), kExitUsage);
    EXPECT_THAT(
        ::testing::internal::GetCapturedStderr(),
        AllOf(HasSubstr("another job file or image"), HasSubstr("`muster status --job ads "),
              HasSubstr("delete job ads`; its state stays")));
  }
  EXPECT_EQ(fake.changes().size(), before);
}

TEST_F(ClusterRun, AJobOfAnotherFileThatSomebodyMakesMeanwhileIsNotFollowed) {
  json rival = {{"metadata",
                 {{"name", "ads"}, {"uid", "theirs"}, {"annotations", {{"muster/job-file", "x"}}}}},
                {"status", Ending("Complete")}};
  fake.MakeBefore("jobs/ads", {{"jobs/ads", rival}});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("another job file or image"));
  // One of the same file is.
  options.detach = true;
  fake.Put("jobs/ads", json());
  EXPECT_EQ(Run(), kExitSucceeded);
  rival["metadata"]["annotations"] = fake.At("jobs/ads")["metadata"]["annotations"];
  fake.Put("jobs/ads", json());
  fake.MakeBefore("jobs/ads", {{"jobs/ads", rival}});
  EXPECT_EQ(Run(), kExitSucceeded);
}

TEST_F(ClusterRun, TheConfigMapIsThatOfTheFileWhoseJobIsMade) {
  options.detach = true;
  fake.MakeBefore("jobs/ads",
                  {{"configmaps/ads-muster", {{"data", {{"job.yaml", "of somebody else"}}}}}});
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_EQ(fake.At("configmaps/ads-muster")["data"]["job.yaml"], kJobFile);
}

TEST_F(ClusterRun, WhatALivingJobHasLostIsPutBack) {
  options.detach = true;
  EXPECT_EQ(Run(), kExitSucceeded);
  fake.Put("services/ads-master", json());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the Service ads-master was not there"));
  EXPECT_TRUE(fake.At("services/ads-master").is_object());
}

TEST_F(ClusterRun, TheEndOfAnotherJobOfTheNameIsNotOurs) {
  const std::jthread rival([this] {
    while (fake.At("jobs/ads").is_null()) SleepFor(std::chrono::milliseconds(10));
    fake.Put("jobs/ads",
             {{"metadata", {{"name", "ads"}, {"uid", "theirs"}}}, {"status", Ending("Complete")}});
  });
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitFailed);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("another one of the same name"));
}

TEST_F(ClusterRun, AJobThatHasEndedIsMadeAgainWithItsSecrets) {
  options.detach = true;
  fake.SetStatusOfNewJobs(Ending("Failed"));
  EXPECT_EQ(Run(), kExitSucceeded);
  const json secret = fake.At("secrets/ads-muster");
  const size_t before = fake.changes().size();
  EXPECT_EQ(Run(), kExitSucceeded);
  std::vector<std::string> later = fake.changes();
  later.erase(later.begin(), later.begin() + static_cast<ptrdiff_t>(before));
  EXPECT_THAT(later, Contains("DELETE jobs/ads"));
  EXPECT_EQ(later.back(), "POST jobs/ads");
  EXPECT_THAT(later, Not(Contains(HasSubstr("secrets"))));
  EXPECT_EQ(fake.At("secrets/ads-muster"), secret);
}

TEST_F(ClusterRun, AJobThatLivesGetsNewCertificates) {
  const std::vector<json> secrets = SecretsMadeBefore(std::chrono::hours(24 * 300));
  fake.Put("secrets/ads-muster", secrets.at(0));
  fake.Put("secrets/ads-muster-ca", secrets.at(1));
  fake.Put("jobs/ads", {{"metadata", {{"name", "ads"}, {"uid", "u"}}}});
  options.detach = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("certificates: renewed"),
                    HasSubstr("`kubectl --namespace team delete job ads`; its state stays")));
  std::vector<std::string> changes = fake.changes();
  ASSERT_GE(changes.size(), 2u);
  changes.resize(2);  // then, what is missing is made
  EXPECT_THAT(changes, ElementsAre("PATCH secrets/ads-muster", "PATCH secrets/ads-muster-ca"));
  const json renewed = fake.At("secrets/ads-muster")["data"];
  EXPECT_NE(renewed["worker.crt"], secrets.at(0)["data"]["worker.crt"]);
  EXPECT_EQ(renewed["worker.key"], secrets.at(0)["data"]["worker.key"]);
}

TEST_F(ClusterRun, AJobThatLivesIsFollowedWithoutNewCertificates) {
  fake.Put("secrets/ads-muster", json{{"metadata", {{"name", "ads-muster"}}}});
  fake.Put("secrets/ads-muster-ca", json{{"metadata", {{"name", "ads-muster-ca"}}}});
  fake.Put("jobs/ads", {{"metadata", {{"name", "ads"}, {"uid", "u"}}}});
  options.detach = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("not renewed: the Secret"));
}

TEST_F(ClusterRun, AJobThatRunsGetsNoOtherKeys) {
  fake.Put("jobs/ads", {{"metadata", {{"name", "ads"}, {"uid", "u"}}}});
  fake.Put("pods/ads-x",
           {{"metadata", {{"name", "ads-x"}, {"labels", {{"muster/job", "ads"}}}}},
            {"spec", {{"containers", json::array({{{"name", "muster"}}})}, {"nodeName", "n1"}}},
            {"status",
             {{"phase", "Running"},
              {"containerStatuses",
               json::array({{{"name", "muster"}, {"state", {{"running", json::object()}}}}})}}}});
  options.detach = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("the Secret ads-muster is not there"),
                    HasSubstr("`kubectl --namespace team delete job ads`; its state stays")));
  EXPECT_THAT(fake.changes(), Not(Contains(HasSubstr("secrets"))));
}

TEST_F(ClusterRun, TheAuthorityIsMadeBeforeTheKeysOfThePods) {
  options.detach = true;
  EXPECT_EQ(Run(), kExitSucceeded);
  const std::vector<std::string> changes = fake.changes();
  ASSERT_GT(changes.size(), 2u);
  EXPECT_EQ(changes[0], "POST secrets/ads-muster-ca");
  EXPECT_EQ(changes[1], "POST secrets/ads-muster");
}

TEST_F(ClusterRun, KeysThatSomebodyElseHasJustMadeStay) {
  options.detach = true;
  const std::vector<json> rival = SecretsMadeBefore({});
  const auto expect_rival = [&] {
    EXPECT_EQ(Run(), kExitSucceeded);
    EXPECT_EQ(fake.At("secrets/ads-muster"), rival.at(0));
    EXPECT_EQ(fake.At("secrets/ads-muster-ca"), rival.at(1));
    EXPECT_THAT(fake.changes(), Not(Contains(HasSubstr("PATCH secrets"))));
  };
  fake.MakeBefore("secrets/ads-muster-ca",
                  {{"secrets/ads-muster", rival.at(0)}, {"secrets/ads-muster-ca", rival.at(1)}});
  expect_rival();
  // We look when the other user has made only the first one.
  fake.Put("secrets/ads-muster", json());
  fake.Put("jobs/ads", json());
  fake.MakeBefore("secrets/ads-muster", {{"secrets/ads-muster", rival.at(0)}});
  expect_rival();
}

TEST_F(ClusterRun, NewKeysKeepTheIdOfTheJob) {
  options.detach = true;
  fake.SetStatusOfNewJobs(Ending("Failed"));
  EXPECT_EQ(Run(), kExitSucceeded);
  const json before = fake.At("secrets/ads-muster")["data"];
  fake.Put("secrets/ads-muster", json());
  EXPECT_EQ(Run(), kExitSucceeded);
  const json after = fake.At("secrets/ads-muster")["data"];
  EXPECT_EQ(after["job-id"], before["job-id"]);
  EXPECT_NE(after["ca.crt"], before["ca.crt"]);
  EXPECT_EQ(fake.At("secrets/ads-muster-ca")["data"]["ca.crt"], after["ca.crt"]);
}

TEST_F(ClusterRun, FailedShardsAreTriedAgainByOneJobOnly) {
  options.detach = true;
  fake.SetStatusOfNewJobs(Ending("Failed"));
  const auto command = [&] {
    return fake.At("jobs/ads")["spec"]["template"]["spec"]["containers"][0]["command"];
  };
  options.retry_failed = true;
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_EQ(command(),
            json({"muster", "run", "/etc/muster/job/job.yaml", "--in-cluster", "--retry-failed"}));
  options.retry_failed = false;
  EXPECT_EQ(Run(), kExitSucceeded);
  EXPECT_EQ(command(), json({"muster", "run", "/etc/muster/job/job.yaml", "--in-cluster"}));
}

TEST_F(ClusterRun, CertificatesThatAreNotOursAreNeverReplaced) {
  options.detach = true;
  fake.SetStatusOfNewJobs(Ending("Complete"));
  EXPECT_EQ(Run(), kExitSucceeded);
  json secret = fake.At("secrets/ads-muster");
  secret["data"]["worker.crt"] = secret["data"]["ps.crt"];
  fake.Put("secrets/ads-muster", secret);
  const size_t before = fake.changes().size();
  EXPECT_EQ(Run(), kExitUsage);
  EXPECT_EQ(fake.At("secrets/ads-muster"), secret);
  EXPECT_EQ(fake.changes().size(), before);
}

TEST_F(ClusterRun, FollowsUntilTheEndWithTheExitCodeOfTheRun) {
  fake.SetStatusOfNewJobs(Ending("Failed"));
  fake.Put("pods/ads-x",
           {{"metadata", {{"name", "ads-x"}, {"labels", {{"muster/job", "ads"}}}}},
            {"spec", {{"containers", json::array({{{"name", "muster"}}})}}},
            {"status",
             {{"phase", "Failed"},
              {"containerStatuses",
               json::array({{{"name", "muster"},
                             {"state",
                              {{"terminated",
                                {{"exitCode", 4},
                                 {"message", R"({"outcome":"cancelled","exit_code":4,)"
                                             R"("reason":"wrong rate"})"}}}}}}})}}}});
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Run(), kExitCancelled);
  const std::string said = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("ads: cancelled after"));
  EXPECT_THAT(said, HasSubstr("wrong rate"));
}

}  // namespace
}  // namespace muster::cluster
