#include <gmock/gmock.h>

#include "scaler/nodes/node_keeper.h"
#include "tests/scaler/nodes/node_keeper_fixture.h"

namespace muster::scaler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class KeeperOrdersTest : public KeeperOrdersFixture {};

// Limits.

TEST_F(KeeperOrdersTest, NodesStartWithTheLimitsOfTheirRole) {
  RunToTraining();
  EXPECT_EQ(limits_["ps-0"], kBig);
  EXPECT_EQ(limits_["worker-1"], kSmall);
}

TEST_F(KeeperOrdersTest, LimitsAreSetInPlaceAndForLaterStarts) {
  RunToTraining();
  Step(ResizeNode::To("worker-0", kBig));
  EXPECT_THAT(Did(), ElementsAre("limit worker-0 to 1 core, 768 MiB"));
  EXPECT_EQ(PlanOf("worker-0").limits, kBig) << "before the effects of the step";
  Step(ResizeNode::To("worker-0", kBig));
  EXPECT_THAT(Did(), ElementsAre("limit worker-0 to 1 core, 768 MiB"))
      << "again, because another process may have changed them";
  Exit("worker-0", kKilled);
  EXPECT_EQ(limits_["worker-0"], kBig);
  EXPECT_EQ(limits_["worker-1"], kSmall);
}

TEST_F(KeeperOrdersTest, LimitsOfANodeThatIsDownAreThoseOfItsNextStart) {
  RunToTraining();
  deaf_ = true;
  Exit("worker-0", kKilled);
  Step(ResizeNode::To("worker-0", kBig));
  EXPECT_THAT(Did(), IsEmpty());
  Step(ExitHeard{"worker-0"});
  EXPECT_EQ(limits_["worker-0"], kBig);
}

TEST_F(KeeperOrdersTest, LimitsBeforeTheFirstStart) {
  Begin();
  Step(ResizeNode::To("ps-0", kBig));
  EXPECT_THAT(Did(), IsEmpty());
  Answer();
  EXPECT_EQ(limits_["ps-0"], kBig);
}

TEST_F(KeeperOrdersTest, SuccessorsSetTheLimitsAgain) {
  RunToTraining();
  Step(ResizeNode::To("worker-0", kBig));
  Did();
  TakeOver();
  EXPECT_THAT(Did(), AllOf(Contains("limit worker-0 to 1 core, 768 MiB"),
                           Not(Contains(HasSubstr("start")))))
      << "the former scaler may have died between the order and the deed";
  Exit("worker-0", kKilled);
  EXPECT_EQ(limits_["worker-0"], kBig);
}

TEST_F(KeeperOrdersTest, LimitsThatWereRefusedAreNotThoseOfTheNode) {
  RunToTraining();
  Step(ResizeNode::To("worker-0", kBig));
  constexpr Resources kTiny{.cpus = 1, .memory_bytes = kMiB};
  Step(ResizeNode::To("worker-0", kTiny));
  Step(LimitRefused{"worker-0", kTiny});
  EXPECT_EQ(Kept("worker-0").limits, kBig);
  EXPECT_EQ(PlanOf("worker-0").limits, kBig);
  Step(LimitRefused{"worker-0", kBig});
  EXPECT_EQ(Kept("worker-0").limits, kBig) << "once is enough";
  Exit("worker-0", kKilled);
  EXPECT_EQ(limits_["worker-0"], kBig);
}

TEST_F(KeeperOrdersTest, ARefusalOfLimitsThatAreWantedNoMoreChangesNothing) {
  RunToTraining();
  Step(ResizeNode::To("worker-0", kBig));
  Step(LimitRefused{"worker-0", kSmall});
  Step(LimitRefused{"worker-7", kBig});
  EXPECT_EQ(Kept("worker-0").limits, kBig);
}

TEST_F(KeeperOrdersTest, SuccessorsKnowWhatWasInForceBeforeARefusal) {
  RunToTraining();
  Step(ResizeNode::To("worker-0", kBig));
  Begin(keeper_->plan());
  // The former scaler may have died before the deed: then this one was never in force.
  constexpr Resources kTiny{.cpus = 1, .memory_bytes = kMiB};
  Step(ResizeNode::To("worker-0", kTiny));
  Step(NodeStarted{"worker-0", pids_["worker-0"]});
  Step(LimitRefused{"worker-0", kTiny});
  EXPECT_EQ(Kept("worker-0").limits, kSmall);
}

TEST_F(KeeperOrdersTest, ARefusalDoesNotTakeBackTheLimitsOfTheNextStart) {
  RunToTraining();
  Step(ResizeNode::To("worker-0", kBig));
  RestartNode order = OrderRestart("worker-0");
  constexpr Resources kTiny{.cpus = 1, .memory_bytes = kMiB};
  order.limits = kTiny;
  Step(order);
  Step(LimitRefused{"worker-0", kTiny});
  EXPECT_EQ(PlanOf("worker-0").limits, kTiny);
}

// Restarts.

TEST_F(KeeperOrdersTest, RestartEndsTheNodeAndStartsItAtOnceWithNewLimits) {
  RunToTraining();
  After(seconds(1));
  RestartNode order = OrderRestart("worker-0");
  order.limits = kBig;
  Step(order);
  EXPECT_THAT(Did(), ElementsAre("stop worker-0"));
  EXPECT_TRUE(Kept("worker-0").told_to_end);
  Step(order);
  After(seconds(5));
  EXPECT_THAT(Did(), IsEmpty()) << "once is enough";
  Exit("worker-0", kTerminated);
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  EXPECT_EQ(starts_["worker-0"], 2u);
  EXPECT_EQ(limits_["worker-0"], kBig);
  EXPECT_EQ(Kept("worker-0").exits, 0u);
  EXPECT_FALSE(Kept("worker-0").told_to_end);
}

TEST_F(KeeperOrdersTest, WhoIsRestartedHasTheTimeOfADrainButForOneThatHangs) {
  options_.drain_timeout = seconds(60);
  RunToTraining();
  RestartNode hung = OrderRestart("worker-1");
  hung.hangs = true;
  for (const RestartNode& order : {OrderRestart("ps-0"), OrderRestart("worker-0"), hung})
    Step(order);
  EXPECT_EQ(stop_timeouts_["ps-0"], seconds(60));
  EXPECT_EQ(stop_timeouts_["worker-0"], seconds(60));
  EXPECT_EQ(stop_timeouts_["worker-1"], options_.stop_timeout);
}

TEST_F(KeeperOrdersTest, AShortDrainTimeoutGivesARestartNoLessTimeThanTheJobsEnd) {
  options_.drain_timeout = seconds(1);
  RunToTraining();
  Step(OrderRestart("ps-0"));
  EXPECT_EQ(stop_timeouts_["ps-0"], options_.stop_timeout);
}

TEST_F(KeeperOrdersTest, TheEndOfTheJobDoesNotWaitForARestart) {
  options_.drain_timeout = seconds(60);
  RunToTraining(1);
  Step(OrderRestart("ps-0"));
  After(seconds(5));
  Did();
  Step(StopWanted{});
  EXPECT_THAT(Did(), ElementsAre("stop worker-0", "stop ps-0"));
  EXPECT_EQ(stop_timeouts_["ps-0"], options_.stop_timeout);
  After(seconds(5));
  EXPECT_THAT(Did(), IsEmpty()) << "once more is enough";
}

TEST_F(KeeperOrdersTest, RestartsAreNoCrashLoop) {
  RunToTraining();
  for (int i = 0; i < 10; ++i) {
    After(seconds(1));
    Step(OrderRestart("ps-0"));
    Exit("ps-0", i % 2 == 0 ? kTerminated : kKilled);
    EXPECT_THAT(Did(), ElementsAre("stop ps-0", "start ps-0"));
  }
  Exit("ps-0", kCrashed);
  EXPECT_EQ(Kept("ps-0").exits, 1u) << "what it does by itself counts as before";
}

TEST_F(KeeperOrdersTest, WorkerThatEndsWellOnARestartIsStartedAgain) {
  RunToTraining();
  After(seconds(1));
  Step(OrderRestart("worker-0"));
  Exit("worker-0", kClean, kEnded);
  EXPECT_THAT(Did(), ElementsAre("stop worker-0", "start worker-0"));
}

TEST_F(KeeperOrdersTest, ARestartThatMeantAnotherLifeChangesNothing) {
  RunToTraining();
  Exit("worker-0", kKilled);
  Did();
  RestartNode order = OrderRestart("worker-0");
  order.only_start = 1;
  order.limits = kBig;
  const Plan before = keeper_->plan();
  Step(order);
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_EQ(keeper_->plan(), before) << "its limits were for the old life, too";
  order.only_start = 2;
  Step(order);
  EXPECT_THAT(Did(), ElementsAre("stop worker-0"));
}

TEST_F(KeeperOrdersTest, AnExitThatTheMasterHasNotHeardOfIsExcusedAndGetsLimits) {
  RunToTraining();
  deaf_ = true;
  After(seconds(1));
  Exit("worker-0", kKilled);
  RestartNode order = OrderRestart("worker-0");
  order.only_start = 1;
  order.limits = kBig;
  Step(order);
  EXPECT_THAT(Did(), IsEmpty()) << "nothing to stop, and not started before the master has heard";
  EXPECT_EQ(PlanOf("worker-0").limits, kBig);
  Step(ExitHeard{"worker-0"});
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  EXPECT_EQ(limits_["worker-0"], kBig);
  EXPECT_EQ(Kept("worker-0").exits, 0u) << "its platform killed it, which is no failure";
}

TEST_F(KeeperOrdersTest, AnExitThatIsChargedCounts) {
  RunToTraining();
  deaf_ = true;
  Exit("worker-0", kKilled);
  RestartNode order = OrderRestart("worker-0");
  order.charged = true;
  Step(order);
  Step(ExitHeard{"worker-0"});
  EXPECT_EQ(Kept("worker-0").exits, 1u);
}

TEST_F(KeeperOrdersTest, ANodeThatWaitsForItsBackOffIsStartedSoonerAndExcusedOnce) {
  RunToTraining();
  Exit("worker-0", kCrashed);
  After(seconds(1));
  Exit("worker-0", kCrashed);
  Did();
  EXPECT_EQ(Kept("worker-0").exits, 2u);
  EXPECT_EQ(Kept("worker-0").state, KeptNode::State::kWaiting);
  Step(OrderRestart("worker-0"));
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  EXPECT_EQ(Kept("worker-0").exits, 1u);
  // No master, no start: the order may come again meanwhile.
  Exit("worker-0", kCrashed);
  Begin(keeper_->plan());
  for (int i = 0; i < 3; ++i) Step(OrderRestart("worker-0"));
  EXPECT_EQ(Kept("worker-0").exits, 1u);
}

TEST_F(KeeperOrdersTest, WhoKillsEveryStartDoesNotKeepTheKeeperBusy) {
  RunToTraining();
  Exit("worker-0", kKilled);
  Did();
  deaf_ = true;
  Exit("worker-0", kKilled);
  Step(OrderRestart("worker-0"));
  Step(ExitHeard{"worker-0"});
  EXPECT_THAT(Did(), IsEmpty());
  After(milliseconds(500));
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
}

TEST_F(KeeperOrdersTest, ARestartDoesNotShortenABackOffToNothing) {
  options_.restarts.crash_loop_exits = 10;
  RunToTraining();
  for (const seconds backoff : {seconds(0), seconds(1), seconds(1), seconds(0)}) {
    Exit("worker-0", kCrashed);
    After(backoff);
  }
  Did();
  Step(OrderRestart("worker-0"));
  EXPECT_THAT(Did(), IsEmpty()) << "it has hardly lived";
  After(milliseconds(500));
  EXPECT_THAT(Did(), ElementsAre("start worker-0")) << "2 s by itself";
}

TEST_F(KeeperOrdersTest, WhatWasFoundIsToldNothingBeforeItIsHeardOf) {
  RunToTraining();
  Step(OrderRestart("worker-0"));
  Step(EndNode{"worker-1"});
  Did();
  Begin(keeper_->plan());
  Answer();
  After(seconds(5));
  EXPECT_THAT(Did(), IsEmpty());
  Step(NodeStarted{"worker-0", pids_["worker-0"]});
  EXPECT_THAT(Did(), Contains("stop worker-0"));
  Step(NodeStarted{"worker-1", pids_["worker-1"]});
  EXPECT_THAT(Did(), Contains("drain worker-1"));
}

TEST_F(KeeperOrdersTest, SuccessorsGoOnWithARestart) {
  RunToTraining();
  After(seconds(1));
  Step(OrderRestart("worker-0"));
  Did();
  TakeOver();
  EXPECT_THAT(Did(), Contains("stop worker-0"))
      << "the former scaler may have died between the order and the deed";
  Exit("worker-0", kTerminated);
  EXPECT_EQ(Kept("worker-0").exits, 0u);
}

TEST_F(KeeperOrdersTest, SuccessorsKnowThatAnExitWasWanted) {
  RunToTraining();
  Step(OrderRestart("worker-0"));
  Begin(keeper_->plan());
  Answer();
  Did();
  Exit("worker-0", kTerminated);
  EXPECT_THAT(Did(), ElementsAre("start worker-0")) << "its limits are those that it starts with";
  EXPECT_EQ(Kept("worker-0").exits, 0u);
  EXPECT_EQ(PlanOf("worker-0").ending, NodePlan::Ending::kNone);
}

}  // namespace
}  // namespace muster::scaler
