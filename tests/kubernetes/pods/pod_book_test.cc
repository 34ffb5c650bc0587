#include "kubernetes/pods/pod_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/model/api_error.h"
#include "tests/kubernetes/pods/pod_book_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNext;
using testing::kPod;
using testing::PodBookTest;
using ::testing::SizeIs;
using testing::Texts;

TEST_F(PodBookTest, AStartAnEndAndTheNextStart) {
  Start();
  EXPECT_TRUE(IsThere(kPod));
  EXPECT_TRUE(book().Has("worker-0"));
  EXPECT_THAT(Told(), IsEmpty());
  cluster_.Run(kPod);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("start worker-0"));
  EXPECT_TRUE(book().IsRunning("worker-0"));
  cluster_.End(kPod, 3);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 exit 3"));
  EXPECT_TRUE(book().Has("worker-0"));
  book().Release("worker-0", host_.now);
  EXPECT_FALSE(book().Has("worker-0"));
  host_.Pass(seconds(1000));
  EXPECT_TRUE(IsThere(kPod)) << "its log is kept";
  StartRunning(2);
  EXPECT_TRUE(IsThere(kPod)) << "until the next start has ended";
  cluster_.End(kNext, 0);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 exit 0"));
  EXPECT_FALSE(IsThere(kPod));
  EXPECT_TRUE(IsThere(kNext));
  ASSERT_THAT(book().PodsOfNode("worker-0"), SizeIs(1));
  EXPECT_EQ(book().PodsOfNode("worker-0").front().name, kNext);
}

// Creating.

TEST_F(PodBookTest, ACreateWhoseAnswerIsLostMakesOnePod) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  host_.CarryNext(/*answer_is_lost=*/true);
  EXPECT_TRUE(IsThere(kPod));
  host_.Pass(seconds(10));
  EXPECT_THAT(cluster_.pods(), SizeIs(1));
  cluster_.Run(kPod);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("start worker-0"));
}

TEST_F(PodBookTest, ALostAnswerIsLookedUpBeforeTheWatchTells) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  host_.CarryNext(/*answer_is_lost=*/true);
  host_.now += seconds(10);
  book().OnTime(host_.now);
  ASSERT_THAT(host_.calls(), SizeIs(1));
  EXPECT_EQ(host_.calls().front().kind, PodCall::Kind::kGet);
  host_.CarryNext();
  EXPECT_THAT(host_.calls(), IsEmpty()) << "it is its own pod";
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(PodBookTest, ACreateThatWasNotCarriedOutIsTriedAgain) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  const uint64_t id = host_.calls().front().id;
  host_.calls().pop_front();
  book().Answered({.id = id, .status = ConnectionError("refused")}, host_.now);
  EXPECT_THAT(host_.calls(), IsEmpty());
  host_.Pass(seconds(10));  // looks
  host_.Pass(seconds(10));
  EXPECT_TRUE(IsThere(kPod));
  EXPECT_THAT(Told(), IsEmpty()) << "one failure is no news";
}

TEST_F(PodBookTest, AnApiServerThatStaysAwayIsTold) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  for (int i = 0; i < 4; ++i) {
    ASSERT_THAT(host_.calls(), SizeIs(1));
    const uint64_t id = host_.calls().front().id;
    host_.calls().pop_front();
    book().Answered({.id = id, .status = ConnectionError("refused")}, host_.now);
    host_.now += seconds(10);
    book().OnTime(host_.now);
  }
  EXPECT_THAT(Told(), ElementsAre("held worker-0 6 refused"));
  host_.Settle();
  host_.Pass(seconds(10));
  EXPECT_TRUE(IsThere(kPod));
  EXPECT_THAT(Told(), ElementsAre("held worker-0 0"));
}

TEST_F(PodBookTest, TheNameIsAStrangers) {
  cluster_.Create({{"metadata", {{"name", kPod}}}});
  Start();
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("held worker-0 5 the name \"flights-worker-0-1\"")));
  host_.Pass(seconds(60));
  EXPECT_TRUE(IsThere(kPod)) << "nobody may touch it";
  cluster_.Remove(kPod);
  host_.Pass(seconds(60));
  EXPECT_EQ(cluster_.pods().at(kPod)["metadata"]["labels"]["muster/run"], "run-1");
  EXPECT_THAT(Told(), ElementsAre("held worker-0 0"));
}

TEST_F(PodBookTest, AnEarlierRunsPodIsHeldByAFinalizer) {
  cluster_.Create({{"metadata",
                    {{"name", kPod},
                     {"labels",
                      {{"muster/job", "flights"},
                       {"muster/run", "run-0"},
                       {"muster/node", "worker-0"},
                       {"muster/start", "1"}}}}}});
  cluster_.Hold(kPod);
  Start();
  EXPECT_TRUE(cluster_.pods().at(kPod)["metadata"].contains("deletionTimestamp"));
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("an earlier run of this job")));
  host_.Pass(seconds(60));
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("finalizer")));
  cluster_.Remove(kPod);
  host_.Pass(seconds(60));
  EXPECT_EQ(cluster_.pods().at(kPod)["metadata"]["labels"]["muster/run"], "run-1");
}

TEST_F(PodBookTest, AQuotaIsWaitedFor) {
  cluster_.quota_used_up = true;
  Start();
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("held worker-0 3 the quota")));
  const uint64_t before = host_.carried;
  host_.Pass(seconds(1));
  EXPECT_GT(host_.carried, before) << "tried again soon";
  EXPECT_THAT(Told(), IsEmpty()) << "and told once";
  cluster_.quota_used_up = false;
  host_.Pass(seconds(10));
  EXPECT_THAT(Told(), ElementsAre("held worker-0 0"));
}

TEST_F(PodBookTest, AMissingRightIsNamedAndTriedSlowly) {
  cluster_.forbidden = true;
  Start();
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("with the verb \"create\" for the resource \"pods\"")));
  const uint64_t before = host_.carried;
  for (int i = 0; i < 19; ++i) host_.Pass(seconds(1));
  EXPECT_EQ(host_.carried, before);
  cluster_.forbidden = false;
  host_.Pass(seconds(1));
  EXPECT_TRUE(IsThere(kPod));
}

TEST_F(PodBookTest, TheServerSaysHowLongToWait) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  const uint64_t id = host_.calls().front().id;
  host_.calls().pop_front();
  book().Answered({.id = id, .status = ToStatus(ReadApiError(429, "slow down", "30"))}, host_.now);
  host_.Pass(seconds(29));
  EXPECT_EQ(host_.carried, 0u);
  host_.Pass(seconds(1));
  EXPECT_TRUE(IsThere(kPod));
}

TEST_F(PodBookTest, StoppedBeforeItsPodIsMade) {
  cluster_.quota_used_up = true;
  Start();
  host_.Reports();
  book().Stop("worker-0", seconds(10), host_.now);
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGTERM"));
  cluster_.quota_used_up = false;
  host_.Pass(seconds(100));
  EXPECT_THAT(cluster_.pods(), IsEmpty());
}

TEST_F(PodBookTest, StoppedWhileItIsNotKnownIfItsPodWasMade) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  book().Stop("worker-0", seconds(10), host_.now);
  host_.CarryNext(/*answer_is_lost=*/true);
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_TRUE(IsThere(kPod));
  host_.Pass(seconds(10));
  EXPECT_FALSE(IsThere(kPod));
  const std::vector<HostReport> reports = host_.Reports();
  EXPECT_THAT(Texts(reports), ElementsAre("exit worker-0 SIGKILL"));
  EXPECT_EQ(ExitOf(reports).pid, 0u) << "it never ran";
}

TEST_F(PodBookTest, ThePodGoesAsSoonAsItIsMade) {
  book().Start({.node = "worker-0", .start = 1}, host_.now);
  const PodCall call = host_.calls().front();
  host_.calls().pop_front();
  const PodAnswer answer = testing::Carry(call, &cluster_);
  cluster_.Remove(kPod);
  book().Answered(answer, host_.now);
  EXPECT_THAT(Told(), ElementsAre("start worker-0", "exit worker-0 SIGKILL disruption 5"));
}

// Waiting.

TEST_F(PodBookTest, WhatItWaitsForIsToldWhenItChanges) {
  Start();
  cluster_.SayUnschedulable(kPod, "0/2 nodes are available");
  host_.Settle();
  cluster_.SayUnschedulable(kPod, "0/2 nodes are available");
  host_.Settle();
  cluster_.SayUnschedulable(kPod, "0/3 nodes are available");
  host_.Settle();
  cluster_.SayWaiting(kPod, "ErrImagePull", "no such image");
  host_.Settle();
  cluster_.SayWaiting(kPod, "ContainerCreating", "");
  host_.Settle();
  cluster_.Run(kPod);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("held worker-0 1 Unschedulable: 0/2 nodes are available",
                                  "held worker-0 1 Unschedulable: 0/3 nodes are available",
                                  "held worker-0 2 ErrImagePull: no such image", "held worker-0 0",
                                  "start worker-0"));
}

// Ending.

TEST_F(PodBookTest, AStopHasItsGraceAndAKillTheShortest) {
  StartRunning();
  book().Stop("worker-0", std::chrono::milliseconds(9'500), host_.now);
  host_.Settle();
  const auto grace = [this] {
    return cluster_.pods().at(kPod)["metadata"]["deletionGracePeriodSeconds"];
  };
  EXPECT_EQ(grace(), 10);
  book().Stop("worker-0", seconds(20), host_.now);
  book().Kill("worker-0", host_.now);
  host_.Settle();
  EXPECT_EQ(grace(), 1);
  EXPECT_THAT(Told(), IsEmpty()) << "it runs";
  cluster_.End(kPod, 143);
  cluster_.Remove(kPod);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGTERM"));
}

TEST_F(PodBookTest, AKillOvertakesAnEndThatIsOnItsWay) {
  StartRunning();
  book().Stop("worker-0", seconds(60), host_.now);
  ASSERT_THAT(host_.calls(), SizeIs(1));
  EXPECT_EQ(host_.calls().front().grace, seconds(60));
  book().Kill("worker-0", host_.now);
  host_.CarryNext();  // the API server takes the long one
  ASSERT_THAT(host_.calls(), SizeIs(1)) << "and then the short one";
  EXPECT_EQ(host_.calls().front().kind, PodCall::Kind::kDelete);
  EXPECT_EQ(host_.calls().front().grace, seconds(1));
}

TEST_F(PodBookTest, ADeletionThatFailsIsTriedAgain) {
  StartRunning();
  book().Kill("worker-0", host_.now);
  const uint64_t id = host_.calls().front().id;
  host_.calls().pop_front();
  book().Answered({.id = id, .status = ConnectionError("broken")}, host_.now);
  EXPECT_FALSE(cluster_.pods().at(kPod)["metadata"].contains("deletionTimestamp"));
  host_.Pass(seconds(10));
  EXPECT_TRUE(cluster_.pods().at(kPod)["metadata"].contains("deletionTimestamp"));
  host_.Pass(seconds(10));
  EXPECT_EQ(host_.carried, 2u) << "and asked for once";
}

TEST_F(PodBookTest, OnlyThisPodIsDeleted) {
  StartRunning();
  book().Kill("worker-0", host_.now);
  ASSERT_THAT(host_.calls(), SizeIs(1));
  const std::string uid = cluster_.pods().at(kPod)["metadata"]["uid"];
  EXPECT_EQ(host_.calls().front().uid, uid);
}

TEST_F(PodBookTest, SomebodyDeletesIt) {
  StartRunning();
  cluster_.Remove(kPod);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 5"));
}

TEST_F(PodBookTest, AnotherPodOfThatNameIsNotIts) {
  StartRunning();
  const nlohmann::json copy = cluster_.pods().at(kPod);
  cluster_.Remove(kPod);
  cluster_.Create(copy);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 5"));
  host_.Pass(seconds(1));
  EXPECT_TRUE(cluster_.pods().at(kPod)["metadata"].contains("deletionTimestamp"))
      << "its start is over";
}

TEST_F(PodBookTest, PreemptedWhileItRuns) {
  StartRunning();
  cluster_.Disrupt(kPod, "PreemptionByScheduler");
  host_.Pass(seconds(5));
  EXPECT_THAT(Told(), IsEmpty()) << "it runs";
  cluster_.End(kPod, 143);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGTERM disruption 2"));
}

TEST_F(PodBookTest, TheLastStateMayLackWhyItWent) {
  StartRunning();
  PodFacts last = book().PodsOfNode("worker-0").front();
  cluster_.Disrupt(kPod, "PreemptionByScheduler");
  host_.Settle();
  last.being_deleted = true;
  book().Gone(last, host_.now);
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 2"));
}

TEST_F(PodBookTest, EvictedAfterItRan) {
  StartRunning();
  cluster_.Evict(kPod);
  host_.Settle();
  const NodeExited exit = ExitOf(host_.Reports());
  EXPECT_EQ(exit.disruption, Disruption::kEvicted);
  EXPECT_EQ(exit.pid, kPodProcess);
  EXPECT_FALSE(exit.not_started);
}

TEST_F(PodBookTest, ALostNodeIsToldAtOnceAndForgottenLater) {
  StartRunning();
  cluster_.Lose(kPod);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 4"));
  book().Release("worker-0", host_.now);
  StartRunning(2);
  EXPECT_TRUE(IsThere(kPod)) << "the next start does not wait for it";
  EXPECT_TRUE(IsThere(kNext));
  host_.Pass(seconds(89));
  EXPECT_TRUE(IsThere(kPod));
  host_.Pass(seconds(1));
  EXPECT_FALSE(IsThere(kPod));
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(PodBookTest, ATaintOnAMachineThatIsWellDrains) {
  StartRunning();
  cluster_.Disrupt(kPod, "DeletionByTaintManager");
  host_.Pass(seconds(20));
  EXPECT_THAT(Told(), IsEmpty()) << "it runs";
  cluster_.End(kPod, 143);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGTERM disruption 3"));
}

TEST_F(PodBookTest, AMachineThatDiesWhileItIsDrained) {
  StartRunning();
  cluster_.Disrupt(kPod, "DeletionByTaintManager");
  host_.Settle();
  host_.Pass(seconds(89));
  EXPECT_THAT(Told(), IsEmpty());
  host_.Pass(seconds(1));
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 3"));
  EXPECT_FALSE(IsThere(kPod));
}

TEST_F(PodBookTest, AnEndThatNobodyConfirms) {
  StartRunning();
  book().Stop("worker-0", seconds(10), host_.now);
  host_.Settle();
  host_.Pass(seconds(69));
  EXPECT_THAT(Told(), IsEmpty());
  host_.Pass(seconds(1));
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 4"));
  EXPECT_FALSE(IsThere(kPod));
}

TEST_F(PodBookTest, AnEndThatNobodyConfirmsAndAFinalizer) {
  StartRunning();
  cluster_.Hold(kPod);
  book().Stop("worker-0", seconds(10), host_.now);
  host_.Settle();
  host_.Pass(seconds(100));
  EXPECT_TRUE(IsThere(kPod));
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 4"));
}

TEST_F(PodBookTest, TheEndOfAnotherPodOfThatName) {
  StartRunning();
  PodFacts other = book().PodsOfNode("worker-0").front();
  other.uid = "another";
  book().Gone(other, host_.now);
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_TRUE(book().IsRunning("worker-0"));
}

TEST_F(PodBookTest, AForcedDeletionThatFailsIsTriedAgain) {
  StartRunning();
  book().Stop("worker-0", seconds(10), host_.now);
  host_.Settle();
  host_.now += seconds(100);
  book().OnTime(host_.now);
  ASSERT_THAT(host_.calls(), SizeIs(1));
  const uint64_t id = host_.calls().front().id;
  host_.calls().pop_front();
  book().Answered({.id = id, .status = ConnectionError("away")}, host_.now);
  EXPECT_THAT(Told(), IsEmpty());
  host_.Pass(seconds(10));
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 4"));
}

TEST_F(PodBookTest, ASilentApiServerConfirmsNothing) {
  StartRunning();
  book().Stop("worker-0", seconds(10), host_.now);
  host_.Settle();
  host_.now += seconds(100);
  book().OnTime(host_.now);
  ASSERT_THAT(host_.calls(), SizeIs(1));
  const uint64_t id = host_.calls().front().id;
  host_.calls().pop_front();
  book().Answered({.id = id, .status = ConnectionError("away")}, host_.now);
  EXPECT_THAT(Told(), IsEmpty());
  cluster_.End(kPod, 0);  // it has ended long since
  cluster_.Remove(kPod);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 exit 0"));
}

}  // namespace
}  // namespace muster::kubernetes
