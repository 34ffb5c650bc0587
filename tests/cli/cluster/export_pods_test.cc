#include "cli/cluster/export_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json ExportPodIn(const std::string& phase, const std::string& state, const json& details) {
  return {{"metadata", {{"name", "ads-export"}}},
          {"spec", {{"containers", json::array({{{"name", "muster"}}})}, {"nodeName", "n1"}}},
          {"status",
           {{"phase", phase},
            {"containerStatuses",
             json::array({{{"name", "muster"}, {"state", {{state, details}}}}})}}}};
}

json Event(const std::string& type, const std::string& time, const std::string& message) {
  return {{"type", type}, {"lastTimestamp", time}, {"message", message}};
}

TEST(ExportPods, BeginsOrWaits) {
  EXPECT_TRUE(*HasBegun(ExportPodIn("Running", "running", json::object())));
  EXPECT_FALSE(*HasBegun(ExportPodIn("Pending", "waiting", {{"reason", "ContainerCreating"}})));
}

TEST(ExportPods, WhatNeverBeginsIsAnError) {
  EXPECT_THAT(HasBegun(ExportPodIn("Pending", "waiting",
                                   {{"reason", "ImagePullBackOff"}, {"message", "no such image"}})),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no such image")));
  EXPECT_THAT(HasBegun(ExportPodIn("Failed", "terminated",
                                   {{"exitCode", 109}, {"message", "unknown verb serve-export"}})),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("muster"), HasSubstr("unknown verb"))));
  json deleted = ExportPodIn("Running", "running", json::object());
  deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_THAT(HasBegun(deleted), testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                                   HasSubstr("deleted by somebody")));
}

TEST(ExportPods, TheNewestWarningSaysWhyAVolumeIsNotThere) {
  const json pod = ExportPodIn("Pending", "waiting", {{"reason", "ContainerCreating"}});
  const std::vector<json> events = {Event("Warning", "2026-01-01T00:00:01Z", "old trouble"),
                                    Event("Warning", "2026-01-01T00:00:02Z", "Multi-Attach error"),
                                    Event("Normal", "2026-01-01T00:00:03Z", "pulled")};
  EXPECT_THAT(WaitsFor(pod, events), AllOf(HasSubstr("Multi-Attach error"), Not(HasSubstr("old")),
                                           Not(HasSubstr("pulled"))));
  EXPECT_THAT(WaitsFor(pod, {}), Not(HasSubstr("Multi-Attach")));
}

TEST(ExportPods, TheSchedulerSaysWhyThereIsNoMachine) {
  json pod = ExportPodIn("Pending", "waiting", json::object());
  pod["spec"].erase("nodeName");
  pod["status"] = {{"phase", "Pending"},
                   {"conditions", json::array({{{"type", "PodScheduled"},
                                                {"status", "False"},
                                                {"reason", "Unschedulable"},
                                                {"message", "0/3 nodes are available"}}})}};
  EXPECT_FALSE(*HasBegun(pod));
  EXPECT_THAT(WaitsFor(pod, {}), HasSubstr("0/3 nodes are available"));
}

}  // namespace
}  // namespace muster::cluster
