#include "cli/cluster/cluster_verbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cluster/cluster_logs.h"
#include "cli/show/output.h"
#include "tests/cli/cluster/fake_cluster.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

json PodOf(const std::string& name, const std::string& job, const std::string& role,
           const std::string& node, const std::string& created, const std::string& state) {
  return {{"metadata",
           {{"name", name},
            {"creationTimestamp", created},
            {"labels", {{"muster/job", job}, {"muster/role", role}, {"muster/node", node}}}}},
          {"spec", {{"containers", json::array({{{"name", "muster"}}})}, {"nodeName", "n1"}}},
          {"status",
           {{"phase", state == "running" ? "Running" : "Pending"},
            {"containerStatuses",
             json::array({{{"name", "muster"}, {"state", {{state, json::object()}}}}})}}}};
}

json JobNamed(const std::string& name) {
  return {{"metadata", {{"name", name}, {"uid", name}, {"labels", {{"muster/job", name}}}}}};
}

std::vector<json> SomePods() {
  return {PodOf("b-worker-0-2", "b", "worker", "worker-0", "2026-01-02T00:00:00Z", "running"),
          PodOf("b-worker-0-1", "b", "worker", "worker-0", "2026-01-01T00:00:00Z", "running"),
          PodOf("b-worker-1-1", "b", "worker", "worker-1", "2026-01-01T00:00:00Z", "waiting"),
          PodOf("b-ps-0-1", "b", "ps", "ps-0", "2026-01-01T00:00:00Z", "running"),
          PodOf("b-x", "b", "master", "", "2026-01-01T00:00:00Z", "running"),
          PodOf("a-x", "a", "master", "", "2026-01-01T00:00:00Z", "waiting")};
}

TEST(ListOnCluster, JobsWithTheirPods) {
  const auto jobs =
      JobsOf({JobNamed("b"), JobNamed("a"), json{{"metadata", {{"name", "x"}}}}}, SomePods());
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].name, "a");
  EXPECT_EQ(jobs[0].look.stage, JobStage::kPending);
  EXPECT_EQ(jobs[1].look.stage, JobStage::kRunning);
  EXPECT_EQ(jobs[1].workers, 2);
  EXPECT_EQ(jobs[1].servers, 1);
  EXPECT_THAT(ListText(jobs, "w"), HasSubstr("running"));
  EXPECT_THAT(ListText({}, "the namespace team"), HasSubstr("no job in the namespace team"));
  const json list = ListToJson(jobs);
  EXPECT_EQ(list["jobs"][1]["state"], "running");
  EXPECT_EQ(list["jobs"][1]["pod"], "b-x");
}

TEST(StacksOnCluster, TheCommandFitsTheNode) {
  const FakeCluster fake;
  StacksOptions options;
  options.query.target.cluster = fake.Target();
  options.query.target.cluster.job = "ads";
  const auto said = [&](const std::string& node) {
    options.node = node;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(StacksOnCluster(options), kExitUsage);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said("scaler"), HasSubstr("kubectl --namespace team exec POD -- muster stacks scaler "
                                        "--state-dir /var/lib/muster/ads"));
  const std::string of_worker = said("worker-0");
  EXPECT_THAT(of_worker, HasSubstr("kubectl --namespace team exec POD -- sh -c 'kill -QUIT 1'"));
  EXPECT_THAT(of_worker, HasSubstr("`muster logs worker-0 --job ads --on kubernetes`"));
  EXPECT_THAT(of_worker, Not(HasSubstr("--state-dir")));
}

TEST(LogsOnCluster, PodsByNodeAndAge) {
  EXPECT_THAT(
      LoggedPods(SomePods(), {"worker-0"}),
      ElementsAre(LoggedPod{"worker-0", "b-worker-0-1"}, LoggedPod{"worker-0", "b-worker-0-2"}));
  EXPECT_THAT(LoggedPods(SomePods(), {"worker-1"}), ElementsAre());
  EXPECT_EQ(LoggedPods(SomePods(), {}).size(), 4u);
  EXPECT_EQ(LoggedPods(SomePods(), {}).front().node, "master");
}

}  // namespace
}  // namespace muster::cluster
