#include "kubernetes/model/pod_state.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/file.h"
#include "tests/kubernetes/live/plane.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using testing::AskPlane;
using testing::Kubectl;
using testing::PodRunning;

/// What a pod becomes in a real cluster.
class PodStateLiveTest : public testing::LiveTest {
 protected:
  /// Waits until the pod's state is as wanted, and records it.
  PodState Await(const std::string& name, const std::function<bool(const PodState&)>& is_wanted) {
    const nlohmann::json pod =
        WaitForPod(name, [&](const nlohmann::json& seen) { return is_wanted(ReadPodState(seen)); });
    testing::RecordPod(pod, name);
    return ReadPodState(pod);
  }
  PodState AwaitStage(const std::string& name, PodStage stage) {
    return Await(name, [&](const PodState& state) { return state.stage == stage; });
  }
  /// A pod that wants so much CPU, on a given node.
  static nlohmann::json Wanting(const std::string& name, const std::string& cpu,
                                const std::string& node = "") {
    nlohmann::json pod = PodRunning(name, "sleep 1000");
    pod["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", cpu}}}};
    if (!node.empty()) pod["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", node}};
    return pod;
  }
};

TEST_F(PodStateLiveTest, Ends) {
  Create(PodRunning("exit-3", "exit 3"));
  Create(PodRunning("exit-137", "exit 137"));
  // The first process of a container cannot kill itself.
  Create(PodRunning("killed", "sh -c 'kill -9 $$'; exit $?"));
  Create(PodRunning("succeeded", "true"));
  nlohmann::json hungry =
      PodRunning("out-of-memory", "exec python3 -c 'b = bytearray(300 << 20); input()' </dev/zero");
  hungry["spec"]["containers"][0]["resources"] = {{"limits", {{"memory", "128Mi"}}}};
  Create(hungry);
  nlohmann::json again = PodRunning("restarting", "exit 4");
  again["spec"]["restartPolicy"] = "Always";
  Create(again);

  const PodState exited = AwaitStage("exit-3", PodStage::kFailed);
  EXPECT_EQ(exited.failure, PodFailure::kExit);
  EXPECT_EQ(exited.exit_code, 3);
  EXPECT_EQ(AwaitStage("exit-137", PodStage::kFailed).failure, PodFailure::kSignal);
  EXPECT_EQ(AwaitStage("killed", PodStage::kFailed).signal, 9);
  EXPECT_EQ(AwaitStage("succeeded", PodStage::kSucceeded).exit_code, 0);
  EXPECT_EQ(AwaitStage("out-of-memory", PodStage::kFailed).failure, PodFailure::kOutOfMemory);
  const PodState restarting = AwaitStage("restarting", PodStage::kRestarting);
  EXPECT_EQ(restarting.reason, "CrashLoopBackOff");
  EXPECT_EQ(restarting.exit_code, 4);
  EXPECT_GT(restarting.restarts, 0);
}

TEST_F(PodStateLiveTest, WaitsAndDisruptions) {
  Create(Wanting("unschedulable", "1000"));
  nlohmann::json missing = PodRunning("image-error", "true");
  missing["spec"]["containers"][0]["image"] = "missing:1";
  Create(missing);
  nlohmann::json secret = PodRunning("config-error", "true");
  secret["spec"]["containers"][0]["env"] = nlohmann::json::array(
      {{{"name", "A"}, {"valueFrom", {{"secretKeyRef", {{"name", "none"}, {"key", "k"}}}}}}});
  Create(secret);
  Create(PodRunning("running", "sleep 1000"));
  Create(PodRunning("evicted", "sleep 1000"));
  nlohmann::json drained = PodRunning("drained", "trap '' TERM; while true; do sleep 1; done");
  drained["spec"]["terminationGracePeriodSeconds"] = 20;
  Create(drained);

  EXPECT_FALSE(AwaitStage("unschedulable", PodStage::kUnschedulable).message.empty());
  EXPECT_FALSE(AwaitStage("image-error", PodStage::kImageError).reason.empty());
  AwaitStage("config-error", PodStage::kConfigError);
  EXPECT_FALSE(AwaitStage("running", PodStage::kRunning).node.empty());
  AwaitStage("evicted", PodStage::kRunning);
  AskPlane("fault /pod/" + ns_ + "/evicted/evict");
  const PodState evicted = AwaitStage("evicted", PodStage::kFailed);
  EXPECT_EQ(evicted.failure, PodFailure::kEvicted);
  EXPECT_EQ(evicted.disruption, Disruption::kEvicted);
  AwaitStage("drained", PodStage::kRunning);
  const testing::TempDir folder;
  ASSERT_THAT(WriteFileAtomically(
                  folder.File("eviction"),
                  R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"drained"}})"),
              testing::IsOk());
  Kubectl("create --raw /api/v1/namespaces/" + ns_ + "/pods/drained/eviction -f " +
          folder.File("eviction"));
  const PodState state = Await("drained", [](const PodState& seen) { return seen.being_deleted; });
  EXPECT_EQ(state.disruption, Disruption::kDrained);
  EXPECT_EQ(state.stage, PodStage::kRunning);
}

/// One test, because a node is lost only after eight seconds.
TEST_F(PodStateLiveTest, PreemptedAndNodeLost) {
  Create(Wanting("node-lost", "100m", "n1"));
  AwaitStage("node-lost", PodStage::kRunning);
  const int process = ProcessOf("node-lost");
  AskPlane("fault /node/n1/lose");

  Kubectl("create priorityclass " + ns_ + "-high --value=1000");
  nlohmann::json low = Wanting("preempted", "3", "n2");
  low["spec"]["containers"][0]["command"][2] = "trap '' TERM; while true; do sleep 0.2; done";
  low["spec"]["terminationGracePeriodSeconds"] = 5;
  Create(low);
  AwaitStage("preempted", PodStage::kRunning);
  nlohmann::json high = Wanting("high", "3", "n2");
  high["spec"]["priorityClassName"] = ns_ + "-high";
  Create(high);
  const PodState preempted = Await("preempted", [](const PodState& seen) {
    return seen.disruption != Disruption::kNone && seen.being_deleted;
  });
  EXPECT_EQ(preempted.disruption, Disruption::kPreempted);
  EXPECT_EQ(preempted.stage, PodStage::kRunning);
  AwaitStage("high", PodStage::kRunning);

  const PodState lost = Await("node-lost", [](const PodState& seen) { return seen.being_deleted; });
  EXPECT_EQ(lost.disruption, Disruption::kNodeLost);
  EXPECT_EQ(lost.stage, PodStage::kRunning);
  // The process lives on: only a lease can fence it.
  EXPECT_EQ(::kill(process, 0), 0);
  AskPlane("fault /node/n1/heal");
}

}  // namespace
}  // namespace muster::kubernetes
