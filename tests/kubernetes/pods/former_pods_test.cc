#include "kubernetes/pods/former_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json JobPod(const std::string& run, const std::string& created) {
  return {{"metadata",
           {{"name", "flights-abcde"},
            {"uid", "pod-of-" + run},
            {"labels", {{"muster/job", "flights"}}},
            {"creationTimestamp", created},
            {"ownerReferences", Json::array({{{"kind", "Job"}, {"uid", run}}})}}},
          {"status", {{"phase", "Running"}}}};
}

Json NodePod(const std::string& run, const std::string& node, const std::string& created) {
  return {{"metadata",
           {{"name", "flights-" + node + "-1"},
            {"uid", run + node},
            {"labels",
             {{"muster/job", "flights"},
              {"muster/run", run},
              {"muster/node", node},
              {"muster/start", "1"}}},
            {"creationTimestamp", created},
            {"ownerReferences", Json::array({{{"kind", "Job"}, {"uid", run}}})}}},
          {"status", {{"phase", "Running"}}}};
}

constexpr char kBeforeRun[] = "2026-11-26T10:00:00Z";
constexpr char kRunBegins[] = "2026-11-26T11:00:00Z";
constexpr char kAfterBegin[] = "2026-11-26T12:00:00Z";

class FormerPodsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Deletions(const FormerPods::Step& step) {
    std::vector<std::string> uids;
    for (const ObjectIdentity& pod : step.deletions) uids.push_back(pod.uid);
    return uids;
  }
  FormerPods former_{{.job = "flights", .ns = "ml", .run = "new"}};
  TimePoint now_;
};

TEST_F(FormerPodsTest, NodesOfAnotherRunAreDeletedOnceAndWaitedFor) {
  EXPECT_EQ(PodsOfAllRuns({.job = "flights"}).labels, "muster/job=flights");
  std::vector<Json> pods = {JobPod("new", kRunBegins), JobPod("old", kBeforeRun),
                            NodePod("old", "worker-0", kBeforeRun),
                            NodePod("new", "ps-0", kAfterBegin)};
  FormerPods::Step step = former_.Look(pods, now_);
  EXPECT_THAT(Deletions(step), ElementsAre("oldworker-0"));
  EXPECT_THAT(step.waits, ElementsAre("flights-worker-0-1"));
  pods[2]["metadata"]["deletionTimestamp"] = kAfterBegin;
  step = former_.Look(pods, now_ + std::chrono::seconds(1));
  EXPECT_THAT(step.deletions, IsEmpty());
  EXPECT_THAT(step.waits, ElementsAre("flights-worker-0-1"));
  pods.erase(pods.begin() + 2);
  EXPECT_THAT(former_.Look(pods, now_).waits, IsEmpty());
}

TEST_F(FormerPodsTest, APodThatDoesNotGoIsLostWithItsMachine) {
  const std::vector<Json> pods = {JobPod("new", kRunBegins), NodePod("old", "ps-0", kBeforeRun)};
  const auto max = FormerPods::kGrace + FormerPods::kConfirmMax;
  former_.Look(pods, now_);
  EXPECT_THAT(former_.Look(pods, now_ + max - std::chrono::seconds(1)).waits,
              ElementsAre("flights-ps-0-1"));
  const FormerPods::Step step = former_.Look(pods, now_ + max);
  EXPECT_THAT(step.waits, IsEmpty());
  EXPECT_THAT(step.deletions, IsEmpty());
}

TEST_F(FormerPodsTest, OneThatHasEndedIsDeletedButNotWaitedFor) {
  std::vector<Json> pods = {JobPod("new", kRunBegins), NodePod("old", "ps-0", kBeforeRun)};
  pods[1]["status"]["phase"] = "Failed";
  const FormerPods::Step step = former_.Look(pods, now_);
  EXPECT_THAT(Deletions(step), ElementsAre("oldps-0"));
  EXPECT_THAT(step.waits, IsEmpty());
}

TEST_F(FormerPodsTest, AJobPodThatWasLeftBehindDoesNotEndItsSuccessors) {
  EXPECT_THAT(former_.Look({JobPod("new", kRunBegins), NodePod("newer", "ps-0", kAfterBegin)}, now_)
                  .deletions,
              IsEmpty());
  EXPECT_THAT(former_.Look({NodePod("old", "ps-0", kBeforeRun)}, now_).deletions, IsEmpty())
      << "which are its successors is not known";
}

}  // namespace
}  // namespace muster::kubernetes
