#include "kubernetes/model/pod_state.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "kubernetes/model/json_access.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

/// A pod as a real API server had it (tests/kubernetes/README.md says how they were recorded).
Json Recorded(const std::string& name) {
  const auto text = ReadFile(std::string(MUSTER_POD_FOLDER) + "/" + name + ".json", 100'000);
  EXPECT_THAT(text, testing::IsOk());
  const auto pod = ParseJson(*text);
  EXPECT_THAT(pod, testing::IsOk());
  return *pod;
}

Json Condition(const std::string& type, const std::string& reason) {
  return {{"type", type}, {"status", "True"}, {"reason", reason}, {"message", "words"}};
}

struct RecordedCase {
  const char* name;
  PodStage stage;
  PodFailure failure;
  Disruption disruption;
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool being_deleted;
  const char* reason;
  const char* described;
};
const RecordedCase kRecorded[] = {
    {"unschedulable",
     PodStage::kUnschedulable,
     PodFailure::kNone,
     Disruption::kNone,
     {},
     {},
     false,
     "Unschedulable",
     "no node has room: 0/2 nodes are available: 2 Insufficient cpu"},
    {"image-error",
     PodStage::kImageError,
     PodFailure::kNone,
     Disruption::kNone,
     {},
     {},
     false,
     "ErrImagePull",
     "image error (ErrImagePull)"},
    {"config-error",
     PodStage::kConfigError,
     PodFailure::kNone,
     Disruption::kNone,
     {},
     {},
     false,
     "CreateContainerConfigError",
     "cannot start (CreateContainerConfigError)"},
    {"running",
     PodStage::kRunning,
     PodFailure::kNone,
     Disruption::kNone,
     {},
     {},
     false,
     "",
     "running"},
    {"succeeded",
     PodStage::kSucceeded,
     PodFailure::kNone,
     Disruption::kNone,
     0,
     {},
     false,
     "Completed",
     "succeeded (exit code 0)"},
    {"exit-3",
     PodStage::kFailed,
     PodFailure::kExit,
     Disruption::kNone,
     3,
     {},
     false,
     "Error",
     "failed: exited (exit code 3)"},
    // 137 without the reason is some SIGKILL, or even the program's own exit code.
    {"exit-137", PodStage::kFailed, PodFailure::kSignal, Disruption::kNone, 137, 9, false, "Error",
     "failed: killed by a signal (signal 9)"},
    {"killed", PodStage::kFailed, PodFailure::kSignal, Disruption::kNone, 137, 9, false, "Error",
     "failed: killed by a signal (signal 9)"},
    {"out-of-memory", PodStage::kFailed, PodFailure::kOutOfMemory, Disruption::kNone, 137, 9, false,
     "OOMKilled", "failed: out of memory (signal 9)"},
    {"restarting",
     PodStage::kRestarting,
     PodFailure::kExit,
     Disruption::kNone,
     4,
     {},
     false,
     "CrashLoopBackOff",
     "restarting: exited (exit code 4)"},
    {"evicted", PodStage::kFailed, PodFailure::kEvicted, Disruption::kEvicted, 143, 15, false,
     "Evicted", "failed: evicted by its node"},
    {"drained",
     PodStage::kRunning,
     PodFailure::kNone,
     Disruption::kDrained,
     {},
     {},
     true,
     "EvictionByEvictionAPI",
     "running, drained, being deleted"},
    {"preempted",
     PodStage::kRunning,
     PodFailure::kNone,
     Disruption::kPreempted,
     {},
     {},
     true,
     "PreemptionByScheduler",
     "running, preempted, being deleted"},
    {"node-lost",
     PodStage::kRunning,
     PodFailure::kNone,
     Disruption::kNodeLost,
     {},
     {},
     true,
     "DeletionByTaintManager",
     "running, node-lost, being deleted"},
    {"resize-deferred",
     PodStage::kRunning,
     PodFailure::kNone,
     Disruption::kNone,
     {},
     {},
     false,
     "",
     "running, its node cannot resize it now"},
};

TEST(PodState, RecordedPods) {
  for (const RecordedCase& one : kRecorded) {
    const PodState state = ReadPodState(Recorded(one.name));
    EXPECT_EQ(state.stage, one.stage) << one.name;
    EXPECT_EQ(state.failure, one.failure) << one.name;
    EXPECT_EQ(state.disruption, one.disruption) << one.name;
    EXPECT_EQ(state.exit_code, one.exit_code) << one.name;
    EXPECT_EQ(state.signal, one.signal) << one.name;
    EXPECT_EQ(state.being_deleted, one.being_deleted) << one.name;
    EXPECT_EQ(state.reason, one.reason) << one.name;
    EXPECT_THAT(Describe(state), HasSubstr(one.described)) << one.name;
    EXPECT_FALSE(state.uid.empty()) << one.name;
    EXPECT_EQ(state.node.empty(), state.stage == PodStage::kUnschedulable) << one.name;
  }
}

TEST(PodState, WhatItHasIsInItsStatus) {
  const Json pod = Recorded("resize-deferred");
  EXPECT_EQ(TextAt(pod["spec"]["containers"][0], {"resources", "requests", "cpu"}), "3");
  const Json& status = ContainerStatusOf(pod, "");
  EXPECT_EQ(TextAt(status, {"resources", "requests", "cpu"}), "200m");
  EXPECT_TRUE(ValueAt(status, {"resources", "limits"}).is_null());
  EXPECT_EQ(ReadPodState(pod).resize, PodResize::kDeferred);
}

TEST(PodState, Resizes) {
  Json pod = Recorded("running");
  const Json before = pod["status"]["conditions"];
  EXPECT_EQ(ReadPodState(pod).resize, PodResize::kNone);
  pod["status"]["conditions"].push_back(Condition("PodResizeInProgress", ""));
  EXPECT_EQ(ReadPodState(pod).resize, PodResize::kInProgress);
  pod["status"]["conditions"].push_back(Condition("PodResizePending", "Infeasible"));
  EXPECT_EQ(ReadPodState(pod).resize, PodResize::kInfeasible);
  pod["status"]["conditions"].back()["status"] = "False";
  EXPECT_EQ(ReadPodState(pod).resize, PodResize::kInProgress);
}

TEST(PodState, ImageErrors) {
  for (const char* reason : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName"}) {
    Json pod = Recorded("image-error");
    pod["status"]["containerStatuses"][0]["state"]["waiting"] = {{"reason", reason},
                                                                 {"message", "no such tag"}};
    const PodState state = ReadPodState(pod);
    EXPECT_EQ(state.stage, PodStage::kImageError) << reason;
    EXPECT_EQ(state.message, "no such tag");
  }
}

TEST(PodState, BeforeItRuns) {
  Json pod = Recorded("image-error");
  pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] = "ContainerCreating";
  EXPECT_EQ(ReadPodState(pod).stage, PodStage::kStarting);
  pod["status"].erase("containerStatuses");
  EXPECT_EQ(ReadPodState(pod).stage, PodStage::kStarting);
  pod["spec"].erase("nodeName");
  pod["status"].erase("conditions");
  EXPECT_EQ(ReadPodState(pod).stage, PodStage::kPending);
  pod["status"]["conditions"] =
      Json::array({{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "SchedulingGated"}}});
  EXPECT_EQ(ReadPodState(pod).stage, PodStage::kPending);
  EXPECT_EQ(ReadPodState(pod).reason, "SchedulingGated");
}

TEST(PodState, AnEvictionMayHaveNoContainer) {
  Json pod = Recorded("evicted");
  pod["status"].erase("containerStatuses");
  pod["status"].erase("conditions");
  const PodState state = ReadPodState(pod);
  EXPECT_EQ(state.failure, PodFailure::kEvicted);
  EXPECT_EQ(state.exit_code, std::nullopt);
  EXPECT_THAT(Describe(state), HasSubstr("low on resource"));
}

TEST(PodState, OtherFailures) {
  Json pod = Recorded("exit-3");
  pod["status"]["reason"] = "DeadlineExceeded";
  EXPECT_EQ(ReadPodState(pod).failure, PodFailure::kOther);
  EXPECT_EQ(ReadPodState(pod).reason, "DeadlineExceeded");
  pod = Recorded("exit-3");
  pod["status"].erase("containerStatuses");
  EXPECT_EQ(ReadPodState(pod).failure, PodFailure::kOther);
  pod = Recorded("running");
  pod["status"]["reason"] = "NodeLost";
  EXPECT_EQ(ReadPodState(pod).disruption, Disruption::kNodeLost);
  pod = Recorded("evicted");
  pod["status"].erase("conditions");
  EXPECT_EQ(ReadPodState(pod).disruption, Disruption::kEvicted) << "an older kubelet";
  pod["status"]["phase"] = "Unknown";
  EXPECT_EQ(ReadPodState(pod).stage, PodStage::kUnknown);
}

TEST(PodState, Disruptions) {
  const struct {
    const char* reason;
    Disruption disruption;
  } kCases[] = {
      {"PreemptionByScheduler", Disruption::kPreempted},
      {"DeletionByTaintManager", Disruption::kDrained},
      {"DeletionByPodGC", Disruption::kNodeLost},
      {"EvictionByEvictionAPI", Disruption::kDrained},
      {"TerminationByKubelet", Disruption::kEvicted},
      {"SomethingNew", Disruption::kDeleted},
  };
  for (const auto& one : kCases) {
    Json pod = Recorded("exit-3");
    pod["status"]["conditions"].push_back(Condition("DisruptionTarget", one.reason));
    EXPECT_EQ(ReadPodState(pod).disruption, one.disruption);
    // How it ended says more than why it had to.
    EXPECT_EQ(ReadPodState(pod).reason, "Error");
  }
}

TEST(PodState, ATaintMeansALostNodeOnlyIfItIsSilent) {
  const auto disruption_of = [](const char* type, const char* status) {
    Json pod = Recorded("node-lost");
    for (Json& condition : pod["status"]["conditions"]) {
      if (condition["type"] == type) condition["status"] = status;
    }
    return ReadPodState(pod).disruption;
  };
  EXPECT_EQ(disruption_of("Ready", "Unknown"), Disruption::kNodeLost);
  EXPECT_EQ(disruption_of("Ready", "True"), Disruption::kDrained);
  EXPECT_EQ(disruption_of("ContainersReady", "False"), Disruption::kDrained)
      << "its kubelet says that it is not ready, so it lives";
  Json pod = Recorded("node-lost");
  pod["status"]["containerStatuses"][0]["state"] = {{"terminated", {{"exitCode", 143}}}};
  EXPECT_EQ(ReadPodState(pod).disruption, Disruption::kDrained) << "its kubelet has ended it";
}

TEST(PodState, OneOfTwoContainers) {
  Json pod = Recorded("running");
  pod["spec"]["containers"].push_back({{"name", "side"}});
  Json side = pod["status"]["containerStatuses"][0];
  side["name"] = "side";
  side["restartCount"] = 5;
  side["state"] = {{"waiting", {{"reason", "CrashLoopBackOff"}}}};
  pod["status"]["containerStatuses"].insert(pod["status"]["containerStatuses"].begin(), side);
  EXPECT_EQ(ReadPodState(pod).stage, PodStage::kRunning);
  EXPECT_EQ(ReadPodState(pod).restarts, 0);
  EXPECT_EQ(ReadPodState(pod, "side").stage, PodStage::kRestarting);
  EXPECT_EQ(ReadPodState(pod, "side").restarts, 5);
}

TEST(PodState, AnythingMayBeMissing) {
  const PodState state = ReadPodState(nullptr);
  EXPECT_EQ(state.stage, PodStage::kUnknown);
  EXPECT_FALSE(state.being_deleted);
  EXPECT_EQ(Describe(state), "unknown");
  // Whichever part of a pod has another type, nothing throws.
  for (const char* name : {"evicted", "preempted", "restarting", "resize-deferred"}) {
    const Json flat = Recorded(name).flatten();
    for (const auto& [path, value] : flat.items()) {
      for (const Json& wrong : {Json(7), Json("x"), Json(nullptr), Json::object()}) {
        Json pod = flat;
        pod[path] = wrong.is_object() ? Json(true) : wrong;
        EXPECT_FALSE(Describe(ReadPodState(pod.unflatten())).empty());
      }
    }
  }
  for (const char* phase : {"Pending", "Running", "Succeeded", "Failed"}) {
    EXPECT_FALSE(Describe(ReadPodState({{"status", {{"phase", phase}}}})).empty());
  }
}

}  // namespace
}  // namespace muster::kubernetes
