// Nodes that have no place in the cluster, and nodes whose place is taken away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scaler/nodes/node_keeper_fixture.h"

namespace muster::scaler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class NodeKeeperHeldTest : public KeeperOrdersFixture {
 protected:
  /// worker-1 is to be started, and the cluster has no place for it.
  void RunWithoutAPlaceForOne() {
    held_["worker-1"] = NodeWait::kUnschedulable;
    RunToTraining();
  }
  void Start(const std::string& node) {
    held_.erase(node);
    pids_[node] = ++last_pid_;
    Step(NodeStarted{node, pids_[node]});
  }
  /// The cluster takes the place of the node away.
  void Disrupt(const std::string& node, Disruption disruption, ExitStatus exit = kTerminated,
               std::optional<SlotRecord> slot = {}) {
    now_ += std::chrono::nanoseconds(1);
    NodeExited exited{node, std::exchange(pids_[node], 0), exit, slot, ""};
    exited.disruption = disruption;
    exited.disruption_text = "by a pod of higher priority";
    Step(exited);
  }
};

TEST_F(NodeKeeperHeldTest, AHeldNodeIsShownWithItsReasonAndTheMasterIsTold) {
  held_["worker-1"] = NodeWait::kUnschedulable;
  Begin();
  Answer();
  const KeptNode kept = Kept("worker-1");
  EXPECT_EQ(kept.state, KeptNode::State::kRunning);
  EXPECT_TRUE(kept.no_process);
  EXPECT_EQ(kept.wait, NodeWait::kUnschedulable);
  EXPECT_EQ(kept.wait_reason, "0/3 nodes are available");
  EXPECT_FALSE(Kept("worker-0").no_process);
  std::vector<std::string> told;
  for (const TellMaster& tell : told_) {
    if (!tell.held.has_value()) continue;
    told.push_back(tell.node + ": " + tell.text);
    EXPECT_EQ(*tell.held, NodeWait::kUnschedulable);
    EXPECT_EQ(tell.start, StartNumber(1));
    EXPECT_FALSE(tell.exited);
  }
  EXPECT_THAT(told, ElementsAre("worker-1: 0/3 nodes are available"));
}

TEST_F(NodeKeeperHeldTest, AStartHasNoDeadlineAndItsLifeBeginsWithItsProcess) {
  RunWithoutAPlaceForOne();
  Pass(std::chrono::hours(2));
  EXPECT_THAT(Did(), IsEmpty());
  Start("worker-1");
  const KeptNode kept = Kept("worker-1");
  EXPECT_FALSE(kept.no_process);
  EXPECT_EQ(kept.wait, NodeWait::kNone);
  EXPECT_EQ(kept.wait_reason, "");
  EXPECT_EQ(kept.started_at, now_);
}

TEST_F(NodeKeeperHeldTest, TheSameWaitGoesOnAndAnotherBeginsAnew) {
  RunWithoutAPlaceForOne();
  const TimePoint since = Kept("worker-1").waits_since;
  Pass(seconds(10));
  Step(NodeHeld{"worker-1", NodeWait::kUnschedulable, "0/4 nodes are available"});
  EXPECT_EQ(Kept("worker-1").waits_since, since);
  EXPECT_EQ(Kept("worker-1").wait_reason, "0/4 nodes are available");
  Step(NodeHeld{"worker-1", NodeWait::kImage, "not found"});
  EXPECT_EQ(Kept("worker-1").waits_since, now_);
}

TEST_F(NodeKeeperHeldTest, AHoldOfANodeThatRunsOrDoesNotExistChangesNothing) {
  RunToTraining();
  Step(NodeHeld{"worker-0", NodeWait::kImage, "late"});
  Step(NodeHeld{"worker-9", NodeWait::kImage, "not ours"});
  EXPECT_EQ(Kept("worker-0").wait, NodeWait::kNone);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(NodeKeeperHeldTest, AMasterThatHasForgottenIsToldAgain) {
  RunWithoutAPlaceForOne();
  const auto seen = [&](NodeWait wait) {
    told_.clear();
    now_ += seconds(1);
    view_.nodes = {{.name = "worker-1", .state = NodeState::kStarting, .wait = wait}};
    Step(MasterAnswered{view_, now_});
    return told_.size();
  };
  EXPECT_EQ(seen(NodeWait::kUnschedulable), 0u);
  EXPECT_EQ(seen(NodeWait::kNone), 1u);
}

TEST_F(NodeKeeperHeldTest, ASuccessorHearsOfItAndCarriesOrdersOut) {
  RunWithoutAPlaceForOne();
  Begin(keeper_->plan());
  Step(NodeHeld{"worker-1", NodeWait::kUnschedulable, "0/3 nodes are available"});
  Answer();
  EXPECT_EQ(Kept("worker-1").wait, NodeWait::kUnschedulable);
  Did();
  Step(Order(EndNode{"worker-1"}));
  EXPECT_THAT(Did(), Contains("stop worker-1"));
}

TEST_F(NodeKeeperHeldTest, AHeldWorkerThatIsToLeaveIsStoppedAtOnce) {
  RunWithoutAPlaceForOne();
  Step(Order(EndNode{"worker-1"}));
  EXPECT_THAT(Did(), ElementsAre("stop worker-1")) << "it has nothing to hand over";
  EXPECT_EQ(stop_timeouts_["worker-1"], milliseconds(0));
  Exit("worker-1", kTerminated);
  EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kFinished);
}

TEST_F(NodeKeeperHeldTest, FewerWorkersAreThoseWithoutAPlaceFirst) {
  held_["worker-0"] = NodeWait::kUnschedulable;
  RunToTraining(3);
  Step(Order(ScaleWorkers{2}));
  EXPECT_THAT(Did(), ElementsAre("stop worker-0"));
  Exit("worker-0", kTerminated);
  Step(Order(ScaleWorkers{1}));
  EXPECT_THAT(Did(), ElementsAre("drain worker-2")) << "then those with the highest numbers";
}

TEST_F(NodeKeeperHeldTest, OtherLimitsMakeAHeldNodeAgain) {
  RunWithoutAPlaceForOne();
  Step(Order(ResizeNode::To("worker-1", kBig)));
  EXPECT_THAT(Did(), ElementsAre("stop worker-1"));
  Exit("worker-1", kTerminated);
  now_ += seconds(1);
  Step(Tick{});
  EXPECT_THAT(Did(), ElementsAre("start worker-1"));
  EXPECT_EQ(limits_["worker-1"], kBig);
  EXPECT_EQ(PlanOf("worker-1").exits, 0u);
}

TEST_F(NodeKeeperHeldTest, AJobThatDrainsNeedsItsServersSoAHeldOneIsMadeAgain) {
  held_["ps-0"] = NodeWait::kUnschedulable;
  RunToTraining();
  view_.state = JobState::kDraining;
  Answer();
  Step(Order(RestartNode{.node = "worker-0", .why = "no need"}));
  EXPECT_THAT(Did(), IsEmpty());
  Step(Order(RestartNode{.node = "ps-0", .why = "too large", .limits = kSmall}));
  EXPECT_THAT(Did(), ElementsAre("stop ps-0"));
  Exit("ps-0", kTerminated);
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("start ps-0"));
  EXPECT_EQ(limits_["ps-0"], kSmall);
}

TEST_F(NodeKeeperHeldTest, ThePlanKeepsTheLimitsWithWhichANodeHadAPlace) {
  held_["worker-1"] = NodeWait::kUnschedulable;
  RunToTraining();
  EXPECT_EQ(PlanOf("ps-0").placed_limits, std::nullopt) << "it still has the place";
  Step(Order(ResizeNode::To("ps-0", kSmall)));
  held_["ps-0"] = NodeWait::kUnschedulable;
  Exit("ps-0", kKilled);
  EXPECT_EQ(PlanOf("ps-0").placed_limits, kSmall) << "resized in place";
  Step(Order(ResizeNode::To("ps-0", kBig)));
  Pass(seconds(5));
  EXPECT_EQ(Kept("ps-0").wait, NodeWait::kUnschedulable);
  EXPECT_EQ(Kept("ps-0").limits, kBig);
  EXPECT_EQ(Kept("ps-0").placed_limits, kSmall) << "without a process, nothing changes";
  Exit("worker-1", kTerminated);
  EXPECT_EQ(PlanOf("worker-1").placed_limits, std::nullopt);
}

TEST_F(NodeKeeperHeldTest, AtTheEndOfTheJobNobodyWaitsForAPlace) {
  RunWithoutAPlaceForOne();
  view_.state = JobState::kSucceeded;
  Answer();
  EXPECT_THAT(Did(), ElementsAre("stop worker-1"));
}

TEST_F(NodeKeeperHeldTest, ADisruptionIsNoCrashHoweverOftenItComes) {
  RunToTraining();
  for (int i = 0; i < 10; ++i) {
    Disrupt("worker-0", Disruption::kEvicted, {.signal = 0, .code = 1});
    After(seconds(40));
    EXPECT_THAT(Did(), ElementsAre("start worker-0")) << i;
  }
  EXPECT_EQ(PlanOf("worker-0").exits, 0u);
}

TEST_F(NodeKeeperHeldTest, WhatIsTakenAwayAgainAndAgainComesBackLaterEachTime) {
  RunToTraining();
  Disrupt("worker-0", Disruption::kPreempted);
  After(milliseconds(500));
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  Disrupt("worker-0", Disruption::kPreempted);
  Disrupt("worker-1", Disruption::kPreempted);
  After(milliseconds(500));
  EXPECT_THAT(Did(), Contains("start worker-1"));
  for (int i = 0; i < 3; ++i) {
    After(seconds(8));
    Disrupt("worker-0", Disruption::kPreempted);
  }
  Did();
  After(seconds(2));
  EXPECT_THAT(Did(), IsEmpty());
  After(seconds(8));
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  Answer();
  Progress();
  Disrupt("worker-0", Disruption::kPreempted);
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("start worker-0")) << "it made progress";
}

TEST_F(NodeKeeperHeldTest, APreemptedWorkerThatHandedOverIsNotTakenForOneThatWasSentAway) {
  RunToTraining();
  drains_["worker-0"] = DrainState::kDraining;
  Answer();
  Disrupt("worker-0", Disruption::kPreempted, kClean, kEnded);
  Pass(seconds(2));
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  EXPECT_EQ(keeper_->plan().workers, 2u);
}

TEST_F(NodeKeeperHeldTest, TheMasterLearnsOfTheDisruption) {
  RunToTraining();
  Disrupt("worker-0", Disruption::kNodeLost, kKilled);
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_[0].disruption, Disruption::kNodeLost);
  EXPECT_EQ(told_[0].text, "its machine does not answer any more: by a pod of higher priority");
}

TEST_F(NodeKeeperHeldTest, ALargerMemoryThatIsRefusedInPlaceIsGivenElsewhere) {
  RunToTraining();
  Step(Order(ResizeNode::To("worker-0", kBig)));
  EXPECT_THAT(Did(), Contains("limit worker-0 to " + ToString(kBig)));
  Step(NodeResized{"worker-0", kBig, ResizeAnswer::kRefused, "node too small"});
  EXPECT_EQ(told_.back().resized, ResizeAnswer::kRefused);
  EXPECT_EQ(told_.back().text, "node too small");
  EXPECT_THAT(Did(), ElementsAre("delay worker-0", "stop worker-0"));
  EXPECT_EQ(stop_timeouts_["worker-0"], options_.drain_timeout) << "it may hand over";
  held_["worker-0"] = NodeWait::kUnschedulable;
  Exit("worker-0", kTerminated);
  After(seconds(1));
  EXPECT_EQ(limits_["worker-0"], kBig);
  EXPECT_EQ(Kept("worker-0").placed_limits, kSmall) << "what it had is known";
}

TEST_F(NodeKeeperHeldTest, LessOrMoreCpuThatIsRefusedInPlaceIsTakenBack) {
  RunToTraining();
  const Resources fast{.cpus = 8, .memory_bytes = kSmall.memory_bytes};
  Step(Order(ResizeNode::To("worker-0", fast)));
  Did();
  Step(NodeResized{"worker-0", fast, ResizeAnswer::kRefused, "node too small"});
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_EQ(Kept("worker-0").limits, kSmall);
}

TEST_F(NodeKeeperHeldTest, ADeferredResizeWaits) {
  RunToTraining();
  Step(Order(ResizeNode::To("worker-0", kBig)));
  Did();
  Step(NodeResized{"worker-0", kBig, ResizeAnswer::kDeferred, "later"});
  EXPECT_EQ(told_.back().resized, ResizeAnswer::kDeferred);
  Step(NodeResized{"worker-0", kSmall, ResizeAnswer::kRefused, "about limits of before"});
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_EQ(Kept("worker-0").limits, kBig);
  Step(NodeResized{"worker-0", kBig, ResizeAnswer::kDone, ""});
  EXPECT_EQ(told_.back().resized, ResizeAnswer::kDone);
  EXPECT_EQ(PlanOf("worker-0").former_limits, std::nullopt);
}

}  // namespace
}  // namespace muster::scaler
