// Scalers that come and go, and limits.
#include "kubernetes/pods/pod_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/model/api_error.h"
#include "tests/kubernetes/pods/pod_book_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using std::chrono::seconds;
using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNext;
using testing::kPod;
using testing::PodBookTest;
using testing::ScriptedBook;
using testing::StatusIs;
using testing::Texts;

// Scalers that come and go.

TEST_F(PodBookTest, ANewScalerFindsThem) {
  StartRunning();
  book().Start({.node = "worker-1", .start = 4, .limits = {.cpus = 1}}, host_.now);
  host_.Settle();
  cluster_.Run("flights-worker-1-4");
  cluster_.End("flights-worker-1-4", 1);
  ScriptedBook next(&cluster_);
  EXPECT_THAT(next.Find(),
              ElementsAre(FoundNode{"worker-0", 1, true}, FoundNode{"worker-1", 4, true}));
  EXPECT_TRUE(next.book().Has("worker-0"));
  next.Pass(seconds(1));
  EXPECT_THAT(Texts(next.Reports()),
              ElementsAre("start worker-0", "start worker-1", "exit worker-1 exit 1"));
  EXPECT_THAT(next.book().SetLimits("worker-0", {}, next.now), testing::IsOk());
  EXPECT_THAT(next.calls(), IsEmpty());
}

TEST_F(PodBookTest, ANewScalerIsToldOfWhatIsOnItsWay) {
  Start();
  cluster_.SayWaiting(kPod, "ContainerCreating", "");
  host_.Settle();
  EXPECT_THAT(Told(), IsEmpty()) << "it was ordered, so this is no news";
  ScriptedBook next(&cluster_);
  next.Find();
  next.Pass(seconds(1));
  EXPECT_THAT(Texts(next.Reports()), ElementsAre("held worker-0 0"));
  next.Pass(seconds(1));
  EXPECT_THAT(Texts(next.Reports()), IsEmpty());
  cluster_.Run(kPod);
  next.Settle();
  EXPECT_THAT(Texts(next.Reports()), ElementsAre("start worker-0"));
}

TEST_F(PodBookTest, WhatIsDiscardedIsNotTold) {
  StartRunning();
  book().Start({.node = "worker-1", .start = 1}, host_.now);
  host_.Settle();
  cluster_.Run("flights-worker-1-1");
  cluster_.End("flights-worker-1-1", 0);
  ScriptedBook next(&cluster_);
  for (const FoundNode& node : next.Find()) next.book().Discard(node, next.now);
  next.Settle();
  EXPECT_THAT(Texts(next.Reports()), IsEmpty());
  EXPECT_TRUE(cluster_.pods().at(kPod)["metadata"].contains("deletionTimestamp"));
  EXPECT_TRUE(IsThere("flights-worker-1-1")) << "the log of a dead one is kept";
  EXPECT_FALSE(next.book().Has("worker-1"));
}

TEST_F(PodBookTest, AFormerScalersCreateComesLate) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  const PodCall late = host_.calls().front();
  ScriptedBook next(&cluster_);
  EXPECT_THAT(next.Find(), IsEmpty());
  testing::Carry(late, &cluster_);
  next.Settle();
  EXPECT_TRUE(IsThere(kPod)) << "the same start may be ordered again";
  next.book().Start({.node = "worker-0", .start = 1}, next.now);
  next.Settle();
  cluster_.Run(kPod);
  next.Settle();
  EXPECT_THAT(Texts(next.Reports()), ElementsAre("start worker-0"));
}

TEST_F(PodBookTest, AFormerScalersPodThatNobodyWantsGoes) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  const PodCall late = host_.calls().front();
  ScriptedBook next(&cluster_);
  next.Find();
  testing::Carry(late, &cluster_);
  next.Settle();
  next.Pass(seconds(59));
  EXPECT_TRUE(IsThere(kPod));
  next.Pass(seconds(1));
  EXPECT_FALSE(IsThere(kPod));
}

TEST_F(PodBookTest, AStartWaitsUntilAnOlderPodOfItsNodeIsGone) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  const PodCall late = host_.calls().front();
  ScriptedBook next(&cluster_);
  next.Find();
  testing::Carry(late, &cluster_);
  next.Settle();
  cluster_.Run(kPod);
  next.Settle();
  next.book().Start({.node = "worker-0", .start = 2}, next.now);
  next.Settle();
  EXPECT_FALSE(IsThere(kNext));
  cluster_.Remove(kPod);
  next.Settle();
  EXPECT_TRUE(IsThere(kNext));
}

TEST_F(PodBookTest, TheEndOfTheRun) {
  StartRunning();
  cluster_.End(kPod, 0);
  host_.Settle();
  book().Release("worker-0", host_.now);
  book().EndRun(host_.now);
  host_.Settle();
  EXPECT_THAT(cluster_.pods(), IsEmpty());
  EXPECT_TRUE(book().IsClear());
}

TEST_F(PodBookTest, ADeathThatNobodySaw) {
  const NodeExited exit = book().DeathOf("worker-7", 3);
  EXPECT_EQ(exit.node, "worker-7");
  EXPECT_EQ(exit.disruption, Disruption::kDeleted);
  EXPECT_EQ(exit.exit.signal, 9);
}

// Limits.

TEST_F(PodBookTest, LimitsChangeInPlace) {
  EXPECT_THAT(book().SetLimits("worker-0", {.cpus = 1}, host_.now),
              StatusIs(absl::StatusCode::kNotFound, ::testing::_));
  StartRunning();
  EXPECT_THAT(book().SetLimits("worker-0", {.cpus = 2}, host_.now), testing::IsOk());
  host_.Settle();
  const uint64_t carried = host_.carried;
  EXPECT_EQ(cluster_.pods().at(kPod)["spec"]["containers"][0]["resources"]["limits"]["cpu"],
            "2000m");
  EXPECT_THAT(Texts(host_.Reports()), Contains("resized worker-0 done"));
  EXPECT_THAT(book().SetLimits("worker-0", {.cpus = 2}, host_.now), testing::IsOk());
  host_.Settle();
  EXPECT_EQ(host_.carried, carried) << "it has them";
}

// Else the API server refuses it, because the class of the pod would change, or it asks the
// scheduler for more than the job file does.
TEST_F(PodBookTest, ARequestKeepsItsShareInPlace) {
  StartRunning();
  cluster_.Change(kPod, [](Json* pod) {
    (*pod)["spec"]["containers"][0]["resources"] = {
        {"requests", {{"cpu", "1"}, {"memory", "256Mi"}}}, {"limits", {{"memory", "1Gi"}}}};
  });
  host_.Settle();
  EXPECT_THAT(book().SetLimits("worker-0", {.memory_bytes = 2ull << 30}, host_.now),
              testing::IsOk());
  host_.Settle();
  EXPECT_EQ(cluster_.pods().at(kPod)["spec"]["containers"][0]["resources"],
            Json({{"requests", {{"cpu", "1"}, {"memory", "536870912"}}},
                  {"limits", {{"memory", "2147483648"}}}}));
}

TEST_F(PodBookTest, LimitsThatTheMachineCanNeverGive) {
  StartRunning();
  cluster_.infeasible = true;
  const Resources big{.cpus = 0, .memory_bytes = 1ull << 40};
  EXPECT_THAT(book().SetLimits("worker-0", big, host_.now), testing::IsOk());
  host_.Settle();
  EXPECT_THAT(Texts(host_.Reports()), Contains("resized worker-0 refused"));
  EXPECT_THAT(book().SetLimits("worker-0", big, host_.now),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("worker-0")));
}

// The API server has taken the limits; the machine says later what became of them.
TEST_F(PodBookTest, LimitsThatTheMachineGivesLater) {
  StartRunning();
  const auto condition = [&](const char* reason) {
    cluster_.Change(kPod, [&](Json* pod) {
      (*pod)["status"]["conditions"] = Json::array();
      if (reason == nullptr) return;
      (*pod)["status"]["conditions"].push_back(
          {{"type", "PodResizePending"}, {"status", "True"}, {"reason", reason}});
    });
    host_.ReadWatch();
  };
  const auto present = [&](const char* cpu) {
    cluster_.Change(kPod, [&](Json* pod) {
      Json& status = (*pod)["status"]["containerStatuses"][0];
      status["resources"]["limits"]["cpu"] = cpu;
    });
    host_.ReadWatch();
  };
  present("1");
  host_.Reports();
  EXPECT_THAT(book().SetLimits("worker-0", {.cpus = 2}, host_.now), testing::IsOk());
  host_.Settle();
  EXPECT_THAT(host_.Reports(), IsEmpty()) << "the container still has the old ones";
  condition("Deferred");
  condition("Deferred");
  EXPECT_THAT(Texts(host_.Reports()), ElementsAre("resized worker-0 deferred"));
  condition(nullptr);
  present("2");
  EXPECT_THAT(Texts(host_.Reports()), ElementsAre("resized worker-0 done"));
}

TEST_F(PodBookTest, KilledForItsMemoryWhileMoreIsPutOff) {
  const auto put_off = [this](const char* name) {
    cluster_.Change(name, [](Json* pod) {
      (*pod)["spec"]["containers"][0]["resources"]["limits"]["memory"] = "1Gi";
      (*pod)["status"]["containerStatuses"][0]["resources"]["limits"]["memory"] = "256Mi";
    });
    host_.Settle();
    // The status of a container that has ended lacks them.
    cluster_.Change(name,
                    [](Json* pod) { (*pod)["status"]["containerStatuses"][0].erase("resources"); });
  };
  StartRunning();
  put_off(kPod);
  cluster_.End(kPod, 137, "OOMKilled");
  host_.Settle();
  EXPECT_EQ(ExitOf(host_.Reports()).memory_limit_bytes, 256u << 20);
  book().Release("worker-0", host_.now);
  StartRunning(2);
  put_off(kNext);
  cluster_.Remove(kNext);
  host_.Settle();
  EXPECT_EQ(ExitOf(host_.Reports()).memory_limit_bytes, 256u << 20) << "it goes while it runs";
}

TEST_F(PodBookTest, LimitsThatTheApiServerRefuses) {
  StartRunning();
  EXPECT_THAT(book().SetLimits("worker-0", {.cpus = 64}, host_.now), testing::IsOk());
  const uint64_t id = host_.calls().front().id;
  host_.calls().pop_front();
  book().Answered({.id = id, .status = ToStatus(ReadApiError(422, "cannot", ""))}, host_.now);
  EXPECT_THAT(Texts(host_.Reports()), Contains("resized worker-0 refused"));
  EXPECT_THAT(book().SetLimits("worker-0", {.cpus = 64}, host_.now),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::_));
}

TEST_F(PodBookTest, LimitsOfAPodThatIsNotMadeYet) {
  cluster_.quota_used_up = true;
  Start(1, {.cpus = 1});
  EXPECT_THAT(book().SetLimits("worker-0", {.cpus = 2}, host_.now), testing::IsOk());
  cluster_.quota_used_up = false;
  const uint64_t carried = host_.carried;
  host_.Pass(seconds(10));
  EXPECT_EQ(host_.carried, carried + 1) << "it is made with them";
  EXPECT_EQ(cluster_.pods().at(kPod)["spec"]["containers"][0]["resources"]["limits"]["cpu"],
            "2000m");
}

TEST_F(PodBookTest, PodsOfOthersArePassedOver) {
  nlohmann::json other = testing::MinimalTemplate();
  other["metadata"] = {
      {"name", "x"},
      {"labels", {{"muster/run", "run-2"}, {"muster/node", "worker-0"}, {"muster/start", "1"}}}};
  PodFacts facts = ReadPodFacts(other);
  book().Seen(facts, host_.now);
  host_.Pass(seconds(1000));
  EXPECT_EQ(host_.carried, 0u);
  EXPECT_THAT(Told(), IsEmpty());
}

}  // namespace
}  // namespace muster::kubernetes
