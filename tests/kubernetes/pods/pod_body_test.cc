#include "kubernetes/pods/pod_body.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/model/json_access.h"
#include "kubernetes/pods/quantity.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using testing::StatusIs;

const PodRun kRun{.job = "flights", .ns = "team", .run = "uid-of-job"};

PodTemplates Templates() {
  auto templates = ParsePodTemplates(R"({
    "worker": {"metadata": {"labels": {"team": "ads"}, "generateName": "x-"},
               "spec": {"restartPolicy": "Always", "containers": [
                 {"name": "muster",
                  "env": [{"name": "A", "value": "1"}, {"name": "MUSTER_NODE", "value": "?"}],
                  "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}},
                 {"name": "sidecar"}]}},
    "ps": {"spec": {"containers": [{"name": "muster"}]}}})");
  EXPECT_THAT(templates, testing::IsOk());
  return *templates;
}

TEST(PodBodyTest, ATemplateBecomesAPod) {
  const Json pod = PodBody(kRun, Templates(),
                           {.node = "worker-0",
                            .role = NodeRole::kWorker,
                            .start = 3,
                            .limits = {.cpus = 0.5, .memory_bytes = 1 << 20}});
  EXPECT_EQ(pod["kind"], "Pod");
  EXPECT_EQ(pod["metadata"]["name"], "flights-worker-0-3");
  EXPECT_EQ(pod["metadata"]["namespace"], "team");
  EXPECT_FALSE(pod["metadata"].contains("generateName"));
  EXPECT_EQ(pod["metadata"]["labels"], Json({{"team", "ads"},
                                             {"app.kubernetes.io/name", "muster"},
                                             {"app.kubernetes.io/instance", "flights"},
                                             {"muster/job", "flights"},
                                             {"muster/run", "uid-of-job"},
                                             {"muster/role", "worker"},
                                             {"muster/node", "worker-0"},
                                             {"muster/start", "3"}}));
  const Json& owner = pod["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["uid"], "uid-of-job");
  EXPECT_EQ(owner["kind"], "Job");
  EXPECT_EQ(owner["controller"], false);
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
  const Json& container = pod["spec"]["containers"][0];
  EXPECT_EQ(container["env"], Json::array({{{"name", "A"}, {"value", "1"}},
                                           {{"name", "MUSTER_NODE"}, {"value", "worker-0"}},
                                           {{"name", "MUSTER_START"}, {"value", "3"}}}));
  EXPECT_EQ(container["resources"],
            Json({{"requests", {{"cpu", "500m"}, {"memory", "1048576"}, {"nvidia.com/gpu", "1"}}},
                  {"limits", {{"cpu", "500m"}, {"memory", "1048576"}}}}));
  EXPECT_EQ(pod["spec"]["containers"][1], Json({{"name", "sidecar"}}));
}

TEST(PodBodyTest, ServersHaveTheirOwnTemplateAndNoLimitsIfNoneAreWanted) {
  const Json pod =
      PodBody(kRun, Templates(), {.node = "ps-1", .role = NodeRole::kServer, .start = 1});
  EXPECT_EQ(pod["metadata"]["labels"]["muster/role"], "ps");
  EXPECT_FALSE(pod["spec"]["containers"][0].contains("resources"));
}

// A job file may ask for less than the limit; policies change only limits.
TEST(PodBodyTest, ARequestKeepsItsShareOfTheLimit) {
  const auto body = [](const char* resources, Resources limits) {
    const absl::StatusOr<PodTemplates> templates = ParsePodTemplates(fmt::format(
        R"({{"worker": {{"spec": {{"containers": [{{"name": "muster", "resources": {}}}]}}}},
             "ps": {{"spec": {{"containers": [{{"name": "muster"}}]}}}}}})",
        resources));
    EXPECT_THAT(templates.status(), testing::IsOk());
    const StartNode start{.node = "worker-0", .role = NodeRole::kWorker, .limits = limits};
    return PodBody(kRun, *templates, start)["spec"]["containers"][0]["resources"];
  };
  const char* const quarter =
      R"({"requests": {"cpu": "2", "memory": "25"}, "limits": {"memory": "100"}})";
  EXPECT_EQ(
      body(quarter, {.memory_bytes = 100}),
      Json({{"requests", {{"cpu", "2"}, {"memory", "25"}}}, {"limits", {{"memory", "100"}}}}));
  EXPECT_EQ(body(quarter, {.memory_bytes = 200})["requests"]["memory"], "50");
  EXPECT_EQ(body(R"({"requests": {"memory": "25"}})", {.memory_bytes = 50})["requests"]["memory"],
            "25");
  EXPECT_EQ(body(R"({"requests": {"memory": "25"}})", {.memory_bytes = 20})["requests"]["memory"],
            "20");
}

TEST(PodBodyTest, TemplatesThatAreNone) {
  EXPECT_THAT(ParsePodTemplates("{"), StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  EXPECT_THAT(ParsePodTemplates(R"({"worker": {"spec": {"containers": []}}})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"worker\"")));
  EXPECT_THAT(ParsePodTemplates(R"({"worker": {"spec": {"containers": [{}]}}, "ps": 3})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"ps\"")));
}

TEST(PodBodyTest, SelectionAndResize) {
  EXPECT_EQ(PodsOf(kRun).labels, "muster/job=flights,muster/run=uid-of-job");
  const Resources limits{.cpus = 2, .memory_bytes = 100};
  const Json patch = ResizePatch("u1", "muster", limits, RequestsFor(limits, {1, 10}, {4, 40}));
  EXPECT_EQ(patch["metadata"]["uid"], "u1");
  const Json& container = patch["spec"]["containers"][0];
  EXPECT_EQ(container["name"], "muster");
  EXPECT_EQ(ReadResources(container["resources"]["limits"]), (Resources{2, 100}));
  EXPECT_EQ(ReadResources(container["resources"]["requests"]), (Resources{0.5, 25}));
}

TEST(PodBodyTest, TheJobIsThereAsLongAsItOwnsItsOwnPod) {
  const Json owner = Json::array({{{"kind", "Job"}, {"uid", kRun.run}}});
  Json job_pod = {{"metadata", {{"labels", {{"muster/job", "flights"}}}}}};
  Json node = {{"metadata",
                {{"labels", {{"muster/job", "flights"}, {"muster/node", "worker-0"}}},
                 {"ownerReferences", owner}}}};
  EXPECT_FALSE(IsJobThere(kRun, {job_pod, node})) << "a node's pod may be patched later";
  job_pod["metadata"]["ownerReferences"] = owner;
  EXPECT_TRUE(IsJobThere(kRun, {node, job_pod}));
}

}  // namespace
}  // namespace muster::kubernetes
