#include "kubernetes/pods/pod_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <cstdio>
#include <functional>

#include "base/file.h"
#include "kubernetes/model/json_access.h"
#include "tests/kubernetes/live/plane.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AskPlane;
using ::testing::HasSubstr;
using testing::Kubectl;

/// Ends at SIGTERM with 0, and otherwise says its name and waits.
constexpr char kWaits[] =
    "trap 'exit 0' TERM; echo $MUSTER_NODE.$MUSTER_START; "
    "while true; do sleep 0.1; done";

/// Nodes of a run as pods of a real cluster.
class PodHostLiveTest : public testing::LiveTest {
 protected:
  void SetUp() override {
    testing::LiveTest::SetUp();
    const testing::TempDir folder;
    // It only has to be there: the garbage collector deletes what belongs to nobody.
    ASSERT_THAT(WriteFileAtomically(folder.File("job"), R"({
      "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "flights"},
      "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "muster", "image": "test", "command": ["true"]}]}}}})"),
                testing::IsOk());
    Kubectl("create -n " + ns_ + " -f " + folder.File("job"));
    run_ = {.job = "flights",
            .ns = ns_,
            .run = Kubectl("get job flights -n " + ns_ + " -o jsonpath={.metadata.uid}")};
    script_ = kWaits;
  }
  void TearDown() override {
    host_.reset();
    testing::LiveTest::TearDown();
  }

  nlohmann::json Template() const {
    nlohmann::json pod = testing::PodRunning("", script_);
    pod["metadata"].erase("name");
    pod["spec"]["containers"][0]["name"] = "muster";
    if (change_) change_(&pod);
    return pod;
  }
  std::vector<FoundNode> Open() {
    host_ = std::make_unique<PodHost>(
        client_.get(), &clock_,
        PodHostOptions{.run = run_,
                       .templates = {Template(), Template()},
                       .book = {.confirm_max = seconds(5), .slow_retry = seconds(2)}});
    const auto found = host_->Find();
    EXPECT_THAT(found, testing::IsOk());
    return found.value_or(std::vector<FoundNode>{});
  }
  void Start(const std::string& node, uint32_t start = 1, Resources limits = {}) {
    ASSERT_THAT(host_->Start({.node = node, .start = start, .limits = limits}), testing::IsOk());
  }
  /// Waits for a report of a kind, and passes over others.
  template <typename Report>
  Report Await(
      const std::string& node,
      const std::function<bool(const Report&)>& is_it = [](const Report&) { return true; }) {
    const TimePoint end = clock_.Now() + testing::kClusterPatience;
    while (clock_.Now() < end) {
      for (HostReport& report : host_->TakeReports()) told_.push_back(std::move(report));
      for (auto told = told_.begin(); told != told_.end(); ++told) {
        const Report* const report = std::get_if<Report>(&*told);
        if (report == nullptr || report->node != node || !is_it(*report)) continue;
        const Report found = *report;
        told_.erase(told);
        return found;
      }
      pollfd wake{host_->wake_fd(), POLLIN, 0};
      ::poll(&wake, 1, 100);
    }
    ADD_FAILURE() << "never told of " << node;
    return {};
  }
  NodeHeld AwaitHeld(const std::string& node, NodeWait wait) {
    return Await<NodeHeld>(node, [wait](const NodeHeld& held) { return held.wait == wait; });
  }
  void StartRunning(const std::string& node, uint32_t start = 1) {
    Start(node, start);
    Await<NodeStarted>(node);
  }
  std::string PodOf(const std::string& node, uint32_t start = 1) const {
    return PodName(run_, node, start);
  }

  PodRun run_;
  std::string script_;
  std::function<void(nlohmann::json*)> change_;
  std::unique_ptr<PodHost> host_;
  std::vector<HostReport> told_;
};

TEST_F(PodHostLiveTest, LivesAndLogs) {
  Open();
  Start("worker-0", 1, {.cpus = 0.1, .memory_bytes = 100 << 20});
  Start("ps-0");
  Await<NodeStarted>("worker-0");
  Await<NodeStarted>("ps-0");
  const TimePoint end = clock_.Now() + testing::kClusterPatience;
  absl::StatusOr<LogPiece> log = host_->ReadLog("worker-0", {});
  while ((!log.ok() || log->lines.empty()) && clock_.Now() < end) {
    SleepFor(milliseconds(50));  // a log has no event
    log = host_->ReadLog("worker-0", {});
  }
  ASSERT_THAT(log, testing::IsOk());
  EXPECT_THAT(log->lines, ::testing::ElementsAre("worker-0.1"));
  const auto none = host_->ReadLog("worker-0", {.offset = log->next_offset});
  ASSERT_THAT(none, testing::IsOk());
  EXPECT_THAT(none->lines, ::testing::IsEmpty());

  EXPECT_THAT(host_->SetLimits("worker-0", {.cpus = 0.2, .memory_bytes = 200 << 20}),
              testing::IsOk());
  WaitForPod(PodOf("worker-0"), [](const nlohmann::json& pod) {
    return ReadPodFacts(pod).limits == (Resources{0.2, 200 << 20});
  });

  host_->Stop("worker-0", seconds(10));
  const NodeExited exit = Await<NodeExited>("worker-0");
  // The stand-in kubelet may take the object away before it has told of the exit code.
  EXPECT_EQ(exit.disruption, Disruption::kNone);
  host_->Release("worker-0");
  ::kill(-ProcessOf(PodOf("ps-0")), SIGKILL);
  EXPECT_EQ(Await<NodeExited>("ps-0").exit.signal, SIGKILL);
  host_->Release("ps-0");
  host_->EndRun();
  const TimePoint gone_by = clock_.Now() + testing::kClusterPatience;
  const auto left = [this] { return client_->List(Resource::kPods, ns_, PodsOf(run_))->items; };
  while (!left().empty() && clock_.Now() < gone_by) SleepFor(milliseconds(50));
  EXPECT_TRUE(left().empty());
}

TEST_F(PodHostLiveTest, AnotherScalerFindsThem) {
  Open();
  StartRunning("worker-0");
  StartRunning("worker-1", 4);
  host_.reset();
  Kubectl("delete pod --wait=true --grace-period=1 -n " + ns_ + " " + PodOf("worker-1", 4));
  EXPECT_THAT(Open(), ::testing::ElementsAre(FoundNode{"worker-0", 1, true}));
  Await<NodeStarted>("worker-0");
  EXPECT_EQ(host_->DeathOf("worker-1", 4).disruption, Disruption::kDeleted);
  Kubectl("delete pod --wait=false --grace-period=1 -n " + ns_ + " " + PodOf("worker-0"));
  EXPECT_EQ(Await<NodeExited>("worker-0").disruption, Disruption::kDeleted);
}

TEST_F(PodHostLiveTest, WhatNodesWaitFor) {
  Open();
  Start("worker-0", 1, {.cpus = 1000});
  EXPECT_THAT(AwaitHeld("worker-0", NodeWait::kUnschedulable).reason,
              HasSubstr("Insufficient cpu"));
  host_->Stop("worker-0", seconds(1));
  EXPECT_EQ(Await<NodeExited>("worker-0").pid, 0u);

  Create(testing::PodRunning(PodOf("worker-1"), "sleep 1000"));
  Start("worker-1");
  EXPECT_THAT(AwaitHeld("worker-1", NodeWait::kConfig).reason, HasSubstr("not of this job"));
  Kubectl("delete pod --wait=false --grace-period=1 -n " + ns_ + " " + PodOf("worker-1"));
  Await<NodeStarted>("worker-1");

  Kubectl("create quota one --hard=pods=1 -n " + ns_);
  const std::string used =
      "wait quota/one --timeout=60s '--for=jsonpath={.status.used.pods}=1' -n ";
  Kubectl(used + ns_);
  Start("worker-2");
  EXPECT_THAT(AwaitHeld("worker-2", NodeWait::kQuota).reason, HasSubstr("quota"));
  Kubectl("delete quota one -n " + ns_);
  Await<NodeStarted>("worker-2");
}

TEST_F(PodHostLiveTest, AnImageThatCannotBeHad) {
  change_ = [](nlohmann::json* pod) { (*pod)["spec"]["containers"][0]["image"] = "missing:1"; };
  Open();
  Start("worker-0");
  EXPECT_FALSE(AwaitHeld("worker-0", NodeWait::kImage).reason.empty());
}

TEST_F(PodHostLiveTest, OutOfMemory) {
  script_ = "exec python3 -c 'b = bytearray(300 << 20); input()' </dev/zero";
  Open();
  Start("worker-0", 1, {.memory_bytes = 128 << 20});
  const NodeExited exit = Await<NodeExited>("worker-0");
  EXPECT_EQ(exit.memory_kill, MemoryKill::kKernel);
  EXPECT_EQ(exit.memory_limit_bytes, 128u << 20);
  EXPECT_EQ(exit.disruption, Disruption::kNone);
}

TEST_F(PodHostLiveTest, EvictedAndHeldByAFinalizer) {
  Open();
  StartRunning("worker-0");
  Kubectl("patch pod --type=merge -n " + ns_ + " " + PodOf("worker-0") +
          R"( -p '{"metadata":{"finalizers":["muster.test/held"]}}')");
  AskPlane("fault /pod/" + ns_ + "/" + PodOf("worker-0") + "/evict");
  EXPECT_EQ(Await<NodeExited>("worker-0").disruption, Disruption::kEvicted);
  host_->Release("worker-0");
  StartRunning("worker-0", 2);
  // The old one goes when the next start has ended, but something holds it; a name is never used
  // twice, so nothing waits for it.
  host_->Kill("worker-0");
  Await<NodeExited>("worker-0");
  host_->Release("worker-0");
  StartRunning("worker-0", 3);
  WaitForPod(PodOf("worker-0"),
             [](const nlohmann::json& pod) { return ReadPodFacts(pod).being_deleted; });
  Kubectl("patch pod --type=merge -n " + ns_ + " " + PodOf("worker-0") +
          R"( -p '{"metadata":{"finalizers":null}}')");
}

TEST_F(PodHostLiveTest, ANodeIsLostAndItsProcessLivesOn) {
  change_ = [](nlohmann::json* pod) {
    (*pod)["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", "n1"}};
  };
  Open();
  StartRunning("worker-0");
  const int process = ProcessOf(PodOf("worker-0"));
  AskPlane("fault /node/n1/lose");
  const NodeExited exit = Await<NodeExited>("worker-0");
  EXPECT_EQ(exit.disruption, Disruption::kNodeLost);
  EXPECT_EQ(::kill(process, 0), 0);
  host_->Release("worker-0");
  // The cluster knows of no other machine for it, and the start does not wait for the lost one.
  Start("worker-0", 2);
  AwaitHeld("worker-0", NodeWait::kUnschedulable);
  AskPlane("fault /node/n1/heal");
  Await<NodeStarted>("worker-0");
}

TEST_F(PodHostLiveTest, ATaintDrainsANodeThatIsWell) {
  change_ = [](nlohmann::json* pod) {
    (*pod)["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", "n1"}};
  };
  Open();
  StartRunning("worker-0");
  const int process = ProcessOf(PodOf("worker-0"));
  Kubectl("taint node n1 muster.test/empty=yes:NoExecute");
  const NodeExited exit = Await<NodeExited>("worker-0");
  Kubectl("taint node n1 muster.test/empty-");
  EXPECT_EQ(exit.disruption, Disruption::kDrained);
  EXPECT_NE(::kill(process, 0), 0) << "it has ended";
}

/// Takes a minute, so it only runs if it is asked for: --gtest_also_run_disabled_tests.
TEST_F(PodHostLiveTest, DISABLED_RequestsAtRest) {
  Open();
  StartRunning("worker-0");
  StartRunning("worker-1");
  const uint64_t before = client_->requests();
  const TimePoint end = clock_.Now() + seconds(60);
  while (clock_.Now() < end) {
    SleepFor(milliseconds(100));
    host_->TakeReports();
    static_cast<void>(host_->Usage("worker-0"));
  }
  const uint64_t requests = client_->requests() - before;
  std::printf("requests per minute at rest: %zu\n", static_cast<size_t>(requests));
  EXPECT_LE(requests, 10u);
}

TEST_F(PodHostLiveTest, TheApiServerIsAwayWhileAPodEnds) {
  Open();
  StartRunning("worker-0");
  StartRunning("worker-1");
  const int process = ProcessOf(PodOf("worker-0"));
  AskPlane("kill apiserver");
  ::kill(-process, SIGKILL);
  Start("worker-2");
  AwaitHeld("worker-2", NodeWait::kUnreachable);
  AskPlane("again apiserver");
  EXPECT_EQ(Await<NodeExited>("worker-0").exit.signal, SIGKILL);
  Await<NodeStarted>("worker-2");
  EXPECT_TRUE(host_->Has("worker-1"));
}

}  // namespace
}  // namespace muster::kubernetes
