#include "cli/cluster/back_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cluster/job_watch.h"
#include "tests/cli/cluster/stand_in_controller.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json EndedPod(const std::string& at) {
  return {
      {"status",
       {{"phase", "Failed"},
        {"containerStatuses",
         json::array({{{"name", "muster"}, {"state", {{"terminated", {{"finishedAt", at}}}}}}})}}}};
}

json JobWith(int64_t failed) {
  return {{"status", {{"failed", failed}}}};
}

TEST(BackOff, DoublesUpToTenMinutes) {
  const int64_t seconds[] = {10, 20, 40, 80, 160, 320, 600, 600};
  for (int64_t deaths = 1; deaths <= 8; ++deaths) {
    EXPECT_EQ(BackOffAfter(deaths).count(), seconds[deaths - 1]) << deaths;
  }
  EXPECT_EQ(BackOffAfter(1'000'000).count(), 600);
}

TEST(BackOff, TheNextStartIsTheWaitAfterTheNewestEnd) {
  const std::vector<json> pods = {EndedPod("2026-01-01T00:05:00Z"),
                                  EndedPod("2026-01-01T00:59:30Z"),
                                  EndedPod("2026-01-01T00:20:00Z")};
  EXPECT_THAT(NextStart(JobWith(3), pods),
              AllOf(HasSubstr("at about 2026-01-01T01:00:10Z"),
                    HasSubstr("the ends of 3 of its pods"), HasSubstr("40 s")));
}

TEST(BackOff, PodsThatAreNotCountedYetCount) {
  json job = JobWith(1);
  job["status"]["uncountedTerminatedPods"] = {{"failed", json::array({"uid"})}};
  EXPECT_THAT(NextStart(job, {EndedPod("2026-01-01T00:00:00Z")}),
              HasSubstr("at about 2026-01-01T00:00:20Z"));
  EXPECT_THAT(NextStart(json::object(), {EndedPod("2026-01-01T00:00:00Z")}),
              AllOf(HasSubstr("at about 2026-01-01T00:00:10Z"), HasSubstr("the end of one")));
}

TEST(BackOff, AnEvictedPodHasNoContainerThatEnded) {
  const json evicted = {
      {"status",
       {{"phase", "Failed"},
        {"conditions", json::array({{{"type", "Ready"},
                                     {"status", "False"},
                                     {"lastTransitionTime", "2026-01-01T00:00:00Z"}}})}}}};
  EXPECT_THAT(NextStart(JobWith(1), {evicted}), HasSubstr("at about 2026-01-01T00:00:10Z"));
  EXPECT_THAT(NextStart(JobWith(2), {json::object()}),
              AllOf(HasSubstr("soon"), HasSubstr("20 s"), Not(HasSubstr("at about"))));
}

TEST(BackOff, TheNextPodComesWhenALookSaysSo) {
  FakeCluster fake;
  StandInController controller(&fake);
  WallTime now = std::chrono::hours(24 * 365 * 56);
  for (int death = 1; death <= 8; ++death) {
    EXPECT_EQ(LookAt(fake.cluster(), "ads")->stage, JobStage::kRunning) << death;
    controller.EndPod(now);
    const JobLook look = *LookAt(fake.cluster(), "ads");
    EXPECT_EQ(look.stage, JobStage::kPending) << death;
    const WallTime begin = now;
    while (!controller.Sync(now)) now += std::chrono::seconds(1);
    EXPECT_THAT(look.why, HasSubstr("at about " + StandInController::Text(now))) << death;
    EXPECT_GT(now, begin);
  }
}

}  // namespace
}  // namespace muster::cluster
