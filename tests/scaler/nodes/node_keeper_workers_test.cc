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

class KeeperWorkersTest : public KeeperOrdersFixture {};

// How many workers.

TEST_F(KeeperWorkersTest, MoreWorkersAreStartedWithWhatTheirPeersNeed) {
  RunToTraining();
  options_.worker_limits = kSmall;
  Step(ResizeNode::To("worker-0", kBig));
  Did();
  Step(ScaleWorkers{4});
  EXPECT_THAT(Did(), ElementsAre("start worker-2", "start worker-3"));
  EXPECT_EQ(limits_["worker-3"], kBig);
  EXPECT_EQ(keeper_->plan().workers, 4u);
  EXPECT_EQ(PlanOf("worker-3").state, NodePlan::State::kRunning);
  Step(ScaleWorkers{4});
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(KeeperWorkersTest, AWorkerLimitedByHandLimitsNoNewOne) {
  Begin(NewPlan("r", 1, 2, {}));
  Answer();
  Answer();
  Step(ResizeNode::To("worker-0", kSmall));
  Step(ScaleWorkers{3});
  EXPECT_EQ(limits_["worker-2"], Resources{}) << "worker-1 has no limits: none are larger";
}

TEST_F(KeeperWorkersTest, FewerWorkersAreDrainedTheHighestFirst) {
  RunToTraining(12);
  Step(ScaleWorkers{10});
  EXPECT_THAT(Did(), ElementsAre("drain worker-10", "drain worker-11"));
  EXPECT_EQ(Kept("worker-10").state, KeptNode::State::kDraining);
  EXPECT_EQ(Kept("worker-9").state, KeptNode::State::kRunning);
  Pass(milliseconds(500));
  EXPECT_THAT(Did(), IsEmpty());
  Pass(milliseconds(500));
  EXPECT_THAT(Did(), ElementsAre("drain worker-10", "drain worker-11"))
      << "until the master shows it: it may be away";
  drains_ = {{"worker-10", DrainState::kDraining}, {"worker-11", DrainState::kDrained}};
  Pass(seconds(10));
  EXPECT_THAT(Did(), IsEmpty());
  drains_.erase("worker-10");
  Pass(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("drain worker-10")) << "a master that was restarted forgets it";
  Exit("worker-10", kClean, kEnded);
  Exit("worker-11", kCrashed);
  EXPECT_THAT(Did(), IsEmpty()) << "finished, however they ended";
  EXPECT_EQ(Kept("worker-11").state, KeptNode::State::kFinished);
  EXPECT_EQ(Kept("worker-11").exits, 0u);
}

TEST_F(KeeperWorkersTest, AWorkerThatDoesNotLeaveIsStopped) {
  RunToTraining();
  Step(ScaleWorkers{1});
  drains_ = {{"worker-1", DrainState::kDraining}};
  Did();
  Pass(options_.drain_timeout);
  EXPECT_THAT(Did(), ElementsAre("stop worker-1"));
  EXPECT_TRUE(Kept("worker-1").told_to_end);
  Exit("worker-1", kKilled);
  EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kFinished);
}

TEST_F(KeeperWorkersTest, ItsOwnPauseIsNoTimeToLeaveIn) {
  RunToTraining();
  Step(ScaleWorkers{1});
  Did();
  StandStill(seconds(3600));
  EXPECT_THAT(Did(), ElementsAre("drain worker-1"));
}

TEST_F(KeeperWorkersTest, AddedWorkersNeverTakeTheNameOfOneThatStillLeaves) {
  RunToTraining();
  Step(ScaleWorkers{1});
  Did();
  Step(ScaleWorkers{2});
  EXPECT_THAT(Did(), ElementsAre("start worker-2"));
  Exit("worker-1", kClean, kEnded);
  Step(ScaleWorkers{3});
  EXPECT_THAT(Did(), ElementsAre("start worker-1")) << "now its name is free";
  EXPECT_EQ(starts_["worker-1"], 2u) << "no start number is used twice";
}

// Which workers leave, and who ordered it.

TEST_F(KeeperWorkersTest, AWorkerThatLeavesByItselfIsStartedAgain) {
  RunToTraining();
  Exit("worker-1", kClean, kEnded);
  EXPECT_THAT(Did(), IsEmpty()) << "the master may know why it left";
  EXPECT_THAT(released_, IsEmpty()) << "a successor has to find the exit";
  EXPECT_EQ(PlanOf("worker-1").state, NodePlan::State::kRunning);
  Step(MasterAnswered{view_, now_ - milliseconds(1)});
  EXPECT_THAT(Did(), IsEmpty()) << "the answer was given before it left";
  Answer();
  EXPECT_THAT(Did(), ElementsAre("start worker-1"));
  EXPECT_THAT(released_, ElementsAre("worker-1"));
  EXPECT_EQ(starts_["worker-1"], 2u);
  EXPECT_EQ(keeper_->plan().workers, 2u);
}

TEST_F(KeeperWorkersTest, AWorkerThatLeavesAtEveryStartIsACrashLoop) {
  RunToTraining();
  for (int life = 0; life < 3; ++life) {
    Exit("worker-1", kClean, kEnded);
    Pass(seconds(3));
  }
  EXPECT_THAT(cancel_reason_, HasSubstr("worker-1 ended 3 times"));
}

TEST_F(KeeperWorkersTest, AWorkerThatLeavesWithoutHavingWorkedWaitsLongerEachTime) {
  RunToTraining();
  const auto leave = [this] {
    Answer();
    Progress();  // by the others
    Exit("worker-1", kClean, kEnded);
    Answer();
  };
  leave();
  EXPECT_THAT(Did(), ElementsAre("start worker-1"));
  std::vector<milliseconds> waited;
  for (int life = 0; life < 8; ++life) {
    leave();
    EXPECT_THAT(Did(), ElementsAre("delay worker-1"));
    const TimePoint left = now_;
    for (int i = 0; i < 100 && pids_["worker-1"] == 0; ++i) Pass(milliseconds(500));
    waited.push_back(std::chrono::duration_cast<milliseconds>(now_ - left));
    EXPECT_THAT(Did(), ElementsAre("start worker-1"));
    if (life == 3) TakeOver();
    Did();
  }
  EXPECT_THAT(waited, ElementsAre(milliseconds(500), seconds(1), seconds(2), seconds(4), seconds(8),
                                  seconds(16), seconds(30), seconds(30)));
  EXPECT_THAT(delay_reason_, AllOf(HasSubstr("left by itself 9 times"), HasSubstr("30 s")));
  EXPECT_EQ(cancel_reason_, "") << "the job continues";
  minibatches_["worker-1"] = 1;
  leave();
  EXPECT_THAT(Did(), ElementsAre("start worker-1")) << "it has worked";
  minibatches_["worker-1"] = 0;
  leave();
  EXPECT_THAT(Did(), ElementsAre("delay worker-1"));
}

TEST_F(KeeperWorkersTest, WhatItDidLastIsHeardOfWithItsEnd) {
  RunToTraining();
  for (int life = 0; life < 3; ++life) {
    Answer();
    Progress();  // by the others
    Exit("worker-1", kClean, kEnded);
    view_.nodes = {{.name = "worker-1",
                    .state = NodeState::kExited,
                    .start = StartNumber(starts_["worker-1"]),
                    .minibatches = 7}};
    Step(MasterAnswered{view_, now_});
    EXPECT_THAT(Did(), ElementsAre("start worker-1"));
  }
}

TEST_F(KeeperWorkersTest, AWorkerThatTheMasterLetGoIsNotWantedAnyMore) {
  for (const NodeState state : {NodeState::kRunning, NodeState::kExited}) {
    RunToTraining(3);
    Exit("worker-1", kClean, kEnded);
    // Somebody asked the master itself, which may have said so before it heard of the exit.
    view_.nodes = {{.name = "worker-1",
                    .state = state,
                    .start = StartNumber(1),
                    .drain = DrainState::kDrained}};
    Step(MasterAnswered{view_, now_});
    EXPECT_THAT(Did(), ElementsAre("sent away worker-1"));
    EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kFinished);
    EXPECT_EQ(keeper_->plan().workers, 2u) << "as many as live";
    Step(ScaleWorkers{3});
    EXPECT_THAT(Did(), ElementsAre("start worker-1"));
  }
}

TEST_F(KeeperWorkersTest, TheDrainOfAnEarlierLifeIsNoReason) {
  RunToTraining();
  Exit("worker-1", kKilled);
  Did();
  Exit("worker-1", kClean, kEnded);
  view_.nodes = {{.name = "worker-1",
                  .state = NodeState::kExited,
                  .start = StartNumber(1),
                  .drain = DrainState::kDrained}};
  Step(MasterAnswered{view_, now_});
  Pass(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("start worker-1"));
}

TEST_F(KeeperWorkersTest, TheEndOfTheJobIsAReasonToLeave) {
  for (const JobState phase : {JobState::kSucceeded, JobState::kDraining}) {
    view_.state = JobState::kRunning;
    RunToTraining();
    released_.clear();
    Exit("worker-0", kClean, kEnded);
    view_.state = phase;
    Answer();
    EXPECT_THAT(Did(), IsEmpty());
    EXPECT_THAT(released_, ElementsAre("worker-0"));
    EXPECT_EQ(Kept("worker-0").state, KeptNode::State::kFinished);
  }
}

TEST_F(KeeperWorkersTest, WhoIsScaledAwayWhileItLeavesNeedsNoReason) {
  RunToTraining();
  Exit("worker-1", kClean, kEnded);
  Step(ScaleWorkers{1});
  EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kFinished);
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(KeeperWorkersTest, WhoMustEndDoesNotWaitForReasons) {
  RunToTraining();
  Exit("worker-1", kClean, kEnded);
  Step(StopWanted{});
  EXPECT_THAT(released_, ElementsAre("worker-1"));
  Exit("worker-0", kClean, kEnded);
  Exit("ps-0", kClean);
  EXPECT_TRUE(keeper_->outcome().has_value());
}

TEST_F(KeeperWorkersTest, FinishedWorkersDoNotCount) {
  RunToTraining(3);
  Step(ScaleWorkers{1});
  Exit("worker-1", kClean, kEnded);
  Exit("worker-2", kClean, kEnded);
  Did();
  Step(ScaleWorkers{1});
  EXPECT_THAT(Did(), IsEmpty()) << "one lives";
  Step(ScaleWorkers{2});
  EXPECT_THAT(Did(), ElementsAre("start worker-1"));
}

TEST_F(KeeperWorkersTest, AWorkerThatIsDownLeavesWithoutADrain) {
  RunToTraining(3);
  Exit("worker-2", kCrashed);
  After(seconds(1));
  Exit("worker-2", kCrashed);
  deaf_ = true;
  Exit("worker-1", kCrashed);
  Did();
  Step(ScaleWorkers{1});
  EXPECT_EQ(Kept("worker-2").state, KeptNode::State::kFinished) << "it waited for its back-off";
  EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kReporting);
  Step(ExitHeard{"worker-1"});
  EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kFinished);
  After(seconds(60));
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(KeeperWorkersTest, AWorkerThatLeavesIsNotRestarted) {
  RunToTraining();
  Step(ScaleWorkers{1});
  Did();
  Step(OrderRestart("worker-1"));
  EXPECT_THAT(Did(), IsEmpty());
  deaf_ = true;
  Exit("worker-1", kKilled);
  Step(OrderRestart("worker-1"));
  Step(ExitHeard{"worker-1"});
  Step(OrderRestart("worker-1"));
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kFinished);
}

TEST_F(KeeperWorkersTest, AWorkerThatIsBeingRestartedCanLeave) {
  RunToTraining();
  Step(OrderRestart("worker-1"));
  Step(ScaleWorkers{1});
  EXPECT_THAT(Did(), ElementsAre("stop worker-1"));
  Exit("worker-1", kTerminated);
  EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kFinished);
}

TEST_F(KeeperWorkersTest, SuccessorsGoOnWithADrainAndKnowAddedWorkers) {
  RunToTraining();
  Step(ScaleWorkers{3});
  Step(EndNode{"worker-0"});
  Did();
  TakeOver();
  EXPECT_THAT(Did(), AllOf(Contains("drain worker-0"), Not(Contains(HasSubstr("start")))));
  EXPECT_EQ(keeper_->plan().workers, 2u);
  Exit("worker-0", kClean, kEnded);
  Exit("worker-2", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start worker-2"));
}

TEST_F(KeeperWorkersTest, ThereIsABoundOnWorkers) {
  Begin(NewPlan("r", 1, 1));
  Step(ScaleWorkers{4'000'000'000});
  EXPECT_EQ(keeper_->plan().workers, kWorkersMax);
  EXPECT_EQ(keeper_->nodes().size(), kWorkersMax + 1u);
}

// One node by hand, and the rest.

TEST_F(KeeperWorkersTest, AWorkerThatIsEndedByHandIsNotStartedAgain) {
  RunToTraining();
  Step(EndNode{"worker-0"});
  EXPECT_THAT(Did(), ElementsAre("drain worker-0"));
  Exit("worker-0", kClean, kEnded);
  After(seconds(60));
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_EQ(keeper_->plan().workers, 1u);
}

TEST_F(KeeperWorkersTest, AServerThatIsDrainedStays) {
  RunToTraining();
  Step(EndNode{"ps-0"});
  EXPECT_THAT(Did(), ElementsAre("drain ps-0"));
  EXPECT_EQ(Kept("ps-0").state, KeptNode::State::kDraining);
  drains_["ps-0"] = DrainState::kDraining;
  Pass(seconds(40));
  EXPECT_THAT(Did(), IsEmpty()) << "never stopped";
  drains_["ps-0"] = DrainState::kDrained;
  Pass(seconds(1));
  EXPECT_EQ(Kept("ps-0").state, KeptNode::State::kRunning);
  Step(EndNode{"ps-0"});
  EXPECT_THAT(Did(), ElementsAre("drain ps-0")) << "once more, for what was done since";
  drains_.clear();
  Exit("ps-0", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start ps-0"));
  EXPECT_EQ(Kept("ps-0").exits, 1u);
  EXPECT_EQ(Kept("ps-0").state, KeptNode::State::kRunning) << "a drain is of one process";
}

TEST_F(KeeperWorkersTest, AServerThatTheMasterDoesNotDrainIsNotAskedForEver) {
  RunToTraining();
  Step(EndNode{"ps-0"});
  Pass(options_.drain_timeout);
  Did();
  EXPECT_EQ(Kept("ps-0").state, KeptNode::State::kRunning);
  Pass(seconds(5));
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(KeeperWorkersTest, FailJobEndsItWithTheReason) {
  RunToTraining();
  Step(FailJob{"ps-0 needs more memory than the budget has"});
  EXPECT_THAT(Did(), ElementsAre("cancel"));
  EXPECT_EQ(cancel_reason_, "ps-0 needs more memory than the budget has");
  Step(FailJob{"another reason"});
  Exit("ps-0", kKilled);
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("cancel"));
  EXPECT_EQ(cancel_reason_, "ps-0 needs more memory than the budget has");
}

TEST_F(KeeperWorkersTest, PausedPoliciesAreInThePlan) {
  RunToTraining();
  Step(SetPaused{"hang"});
  Step(SetPaused{"worker-count"});
  Step(SetPaused{"worker-count", false});
  EXPECT_THAT(keeper_->plan().paused, ElementsAre("hang"));
  Begin(keeper_->plan());
  EXPECT_THAT(keeper_->plan().paused, ElementsAre("hang"));
}

TEST_F(KeeperWorkersTest, StacksAreDumpedAndTheMastersOrdersAreNotOurs) {
  RunToTraining();
  Step(DumpStacks{"ps-0"});
  EXPECT_THAT(Did(), ElementsAre("dump ps-0"));
  const Plan plan = keeper_->plan();
  for (const Order& order : std::vector<Order>{DrainJob{}, CancelJob{}, RetryShards{}}) Step(order);
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_EQ(keeper_->plan(), plan);
}

TEST_F(KeeperWorkersTest, OrdersForNobodyChangeNothing) {
  RunToTraining();
  Step(ScaleWorkers{1});
  Exit("worker-1", kClean, kEnded);
  Did();
  const Plan before = keeper_->plan();
  for (const char* node : {"worker-7", "worker-1"}) {
    Step(OrderRestart(node));
    Step(EndNode{node});
  }
  Step(ResizeNode::To("worker-7", kBig));
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_EQ(keeper_->plan().nodes, before.nodes);
}

TEST_F(KeeperWorkersTest, AJobThatDrainsTakesOnlyWhatHelpsIt) {
  RunToTraining();
  view_.state = JobState::kDraining;
  Answer();
  Step(OrderRestart("worker-0"));
  Step(OrderRestart("ps-0"));
  Step(ScaleWorkers{5});
  Step(ScaleWorkers{1});
  Step(EndNode{"worker-0"});
  Step(FailJob{"too slow"});
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_EQ(keeper_->nodes().size(), 3u);
  After(seconds(1));
  deaf_ = true;
  Exit("ps-0", kKilled);
  RestartNode order = OrderRestart("ps-0");
  order.limits = Resources{.memory_bytes = 1024 * kMiB};
  Step(order);
  Step(ExitHeard{"ps-0"});
  EXPECT_THAT(Did(), ElementsAre("start ps-0"));
  EXPECT_EQ(limits_["ps-0"].memory_bytes, 1024 * kMiB) << "killed for its memory, it needs more";
  Step(ResizeNode::To("ps-0", kBig));
  EXPECT_THAT(Did(), ElementsAre("limit ps-0 to 1 core, 768 MiB"));
}

TEST_F(KeeperWorkersTest, WhatWeEndWhileTheJobDrainsDoesNotFailIt) {
  RunToTraining();
  view_.state = JobState::kDraining;
  Answer();
  for (int i = 0; i < 6; ++i) {
    lost_ = {"ps-0"};
    Pass(options_.dump_wait + seconds(1));
    EXPECT_THAT(Did(), ElementsAre("dump ps-0", "kill ps-0"));
    lost_.clear();
    Exit("ps-0", kKilled);
    After(seconds(1));
    EXPECT_THAT(Did(), ElementsAre("start ps-0"));
  }
  EXPECT_EQ(cancel_reason_, "");
}

TEST_F(KeeperWorkersTest, AJobThatIsOverTakesNoOrders) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  Did();
  Step(ResizeNode::To("worker-0", kBig));
  Step(OrderRestart("worker-0"));
  Step(ScaleWorkers{5});
  Step(ScaleWorkers{1});
  Step(EndNode{"worker-0"});
  Step(FailJob{"too late"});
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(KeeperWorkersTest, WhatIsKeptIsShown) {
  RunToTraining();
  EXPECT_EQ(Kept("worker-0").pid, pids_["worker-0"]);
  EXPECT_EQ(Kept("worker-0").starts, 1u);
  EXPECT_EQ(Kept("worker-0").limits, kSmall);
  EXPECT_EQ(Kept("worker-0").started_at, now_);
  EXPECT_TRUE(Kept("worker-0").seen_running);
  EXPECT_EQ(Kept("ps-0").role, NodeRole::kServer);
  deaf_ = true;
  const uint64_t pid = pids_["worker-0"];
  Exit("worker-0", kKilled);
  EXPECT_EQ(Kept("worker-0").pid, pid) << "until its end is dealt with";
}

}  // namespace
}  // namespace muster::scaler
