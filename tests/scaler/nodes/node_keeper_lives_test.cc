#include <gmock/gmock.h>

#include "scaler/nodes/node_keeper.h"
#include "tests/scaler/nodes/node_keeper_fixture.h"

/// One life of a node passes only its name, its limits and its count of exits to the next. A pause
/// of the keeper changes nothing.
namespace muster::scaler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KeeperLivesTest : public KeeperOrdersFixture {
 protected:
  /// Dies and is started again at once, however young it is.
  void Restart(const std::string& node) {
    After(seconds(1));
    Exit(node, kKilled);
    After(seconds(1));
    EXPECT_THAT(Did(), Contains("start " + node));
  }
};

TEST_F(KeeperLivesTest, AStartIsPlannedWithoutThePidOfTheLifeBefore) {
  RunToTraining();
  keeper_->Step(NodeExited{.node = "worker-0", .pid = pids_["worker-0"], .exit = kKilled}, now_);
  keeper_->Step(ExitHeard{"worker-0"}, now_);
  EXPECT_EQ(PlanOf("worker-0").starts, 2u);
  // A successor would take it for a process that has died.
  EXPECT_EQ(PlanOf("worker-0").pid, 0u);
}

TEST_F(KeeperLivesTest, ProgressBeforeItsStartExcusesNoNode) {
  RunToTraining();
  Progress();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cancel_reason_, "") << "the first of these lives saw the progress";
    Exit("worker-0", kCrashed);
    Pass(seconds(2));
  }
  EXPECT_THAT(cancel_reason_, HasSubstr("worker-0 ended 3 times"));
}

TEST_F(KeeperLivesTest, AnAnswerOfTheMastersAboutOneLifeDecidesOnlyOfThat) {
  RunToTraining();
  Exit("worker-0", kKilled);
  Step(ExitHeard{"worker-0"});  // once more
  deaf_ = true;
  Did();
  released_.clear();
  Exit("worker-0", kKilled);
  After(seconds(60));
  EXPECT_THAT(Did(), IsEmpty()) << "of this exit it has not heard";
  EXPECT_THAT(released_, IsEmpty());
}

TEST_F(KeeperLivesTest, LimitsThatALifeBeganWithAreNotTakenBack) {
  RunToTraining();
  Step(ResizeNode::To("worker-0", kBig));
  Restart("worker-0");
  Step(LimitRefused{"worker-0", kBig});
  EXPECT_EQ(PlanOf("worker-0").limits, kBig) << "it runs within them";
}

TEST_F(KeeperLivesTest, WhoHungInOneLifeHasTheTimeOfADrainInTheNext) {
  options_.drain_timeout = seconds(60);
  RunToTraining();
  RestartNode hung = OrderRestart("worker-0");
  hung.hangs = true;
  Step(hung);
  EXPECT_EQ(stop_timeouts_["worker-0"], options_.stop_timeout);
  Restart("worker-0");
  Step(OrderRestart("worker-0"));
  EXPECT_EQ(stop_timeouts_["worker-0"], options_.drain_timeout);
}

TEST_F(KeeperLivesTest, ALostWorkersNextLifeHasTimeOfItsOwn) {
  RunToTraining();
  lost_ = {"worker-0"};
  Answer();
  Pass(options_.worker_lost_max - seconds(1));
  Restart("worker-0");
  Answer();
  Pass(options_.worker_lost_max - seconds(1));
  EXPECT_THAT(Did(), IsEmpty());
  Pass(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("dump worker-0"));
}

TEST_F(KeeperLivesTest, ALostServersStacksAreWrittenInEveryLife) {
  RunToTraining();
  lost_ = {"ps-0"};
  for (int life = 0; life < 2; ++life) {
    Answer();
    EXPECT_THAT(Did(), ElementsAre("dump ps-0"));
    Pass(options_.dump_wait);
    EXPECT_THAT(Did(), ElementsAre("kill ps-0"));
    Exit("ps-0", kKilled);
    After(seconds(1));
    EXPECT_THAT(Did(), ElementsAre("start ps-0"));
    EXPECT_EQ(Kept("ps-0").exits, life + 1u) << "that it hung is its own doing";
  }
}

TEST_F(KeeperLivesTest, AWorkerThatWasAddedAgainIsDrainedAsIfForTheFirstTime) {
  RunToTraining();
  for (int life = 0; life < 2; ++life) {
    Step(ScaleWorkers{1});
    EXPECT_THAT(Did(), ElementsAre("drain worker-1"));
    drains_ = {{"worker-1", DrainState::kDraining}};
    Pass(options_.drain_timeout - seconds(1));
    Exit("worker-1", kClean, kEnded);
    drains_.clear();
    EXPECT_EQ(PlanOf("worker-1").ending, NodePlan::Ending::kNone);
    Step(ScaleWorkers{2});
    EXPECT_THAT(Did(), ElementsAre("start worker-1"));
  }
}

TEST_F(KeeperLivesTest, AWorkerThatWasAddedAgainBeginsWithoutCrashes) {
  RunToTraining();
  Exit("worker-1", kCrashed);
  Pass(seconds(1));
  Exit("worker-1", kCrashed);
  ASSERT_EQ(Kept("worker-1").exits, 2u);
  ASSERT_EQ(Kept("worker-1").state, KeptNode::State::kWaiting);
  Step(ScaleWorkers{1});
  EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kFinished);
  Step(ScaleWorkers{2});
  EXPECT_EQ(Kept("worker-1").state, KeptNode::State::kRunning) << "at once";
  EXPECT_EQ(Kept("worker-1").exits, 0u);
  EXPECT_EQ(Kept("worker-1").limits, kSmall);
}

TEST_F(KeeperLivesTest, WhoWasAddedAgainKeepsWhatItTurnedOutToNeed) {
  options_.worker_limits = {.cpus = 2, .memory_bytes = 64 * kMiB};
  RunToTraining();
  Step(ResizeNode::To("worker-1", kBig));
  Step(ScaleWorkers{0});
  for (const char* worker : {"worker-0", "worker-1"}) Exit(worker, kClean, kEnded);
  Did();
  Step(ScaleWorkers{3});
  EXPECT_EQ(limits_["worker-0"], (Resources{.cpus = 2, .memory_bytes = 512 * kMiB}));
  EXPECT_EQ(limits_["worker-1"], (Resources{.cpus = 2, .memory_bytes = 768 * kMiB}));
  EXPECT_EQ(limits_["worker-2"], options_.worker_limits) << "there were no peers to learn from";
}

TEST_F(KeeperLivesTest, AServerIsDrainedAsOftenAsItIsAsked) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    Step(EndNode{"ps-0"});
    EXPECT_THAT(Did(), ElementsAre("drain ps-0"));
    drains_ = {{"ps-0", DrainState::kDrained}};
    Pass(milliseconds(100));
    EXPECT_EQ(Kept("ps-0").state, KeptNode::State::kRunning);
  }
  // One that is in progress is not started again.
  drains_.clear();
  Step(EndNode{"ps-0"});
  Step(EndNode{"ps-0"});
  EXPECT_THAT(Did(), ElementsAre("drain ps-0"));
}

TEST_F(KeeperLivesTest, ARefusalIsOfTheInputAtAServersFirstStartAlone) {
  constexpr ExitStatus kRefused{.signal = 0, .code = kBadInputExit};
  RunToTraining();
  Exit("worker-0", kRefused);
  EXPECT_THAT(Did(), ElementsAre("start worker-0")) << "a trainer may exit with what it likes";
  Exit("ps-0", kRefused);
  EXPECT_THAT(Did(), ElementsAre("start ps-0")) << "it has run: its input is good";
  Begin();
  Answer();
  Exit("ps-0", {.signal = SIGINT, .code = kBadInputExit});
  Did();
  unseen_ = {"ps-0"};
  After(seconds(1));
  Exit("ps-0", kRefused);
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("start ps-0")) << "its first start did not refuse";
  EXPECT_FALSE(keeper_->outcome().has_value());
}

TEST_F(KeeperLivesTest, WhoIsToldToEndIsNotKilledForItsSilence) {
  RunToTraining();
  Step(OrderRestart("ps-0"));
  EXPECT_THAT(Did(), ElementsAre("stop ps-0"));
  lost_ = {"ps-0"};
  Pass(seconds(20));
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(KeeperLivesTest, ProgressIsShownUntilItsEndIsDealtWith) {
  RunToTraining();
  Progress();
  deaf_ = true;
  Exit("worker-0", kCrashed);
  EXPECT_TRUE(Kept("worker-0").progressed);
  Step(ExitHeard{"worker-0"});
  Exit("worker-0", kCrashed);
  EXPECT_FALSE(Kept("worker-0").progressed) << "of the life before";
}

TEST_F(KeeperLivesTest, WhoWasToldToEndIsShownAsSuch) {
  RunToTraining();
  Step(EndNode{"worker-1"});
  EXPECT_TRUE(Kept("worker-1").told_to_end);
  lost_ = {"ps-0"};
  Answer();
  Pass(options_.dump_wait);
  EXPECT_TRUE(Kept("ps-0").told_to_end);
  EXPECT_FALSE(Kept("worker-0").told_to_end);
}

TEST_F(KeeperLivesTest, AWorkerThatCrashedAfterItsLoopsHadEndedHasCrashed) {
  RunToTraining();
  Exit("worker-0", kCrashed, kEnded);
  EXPECT_THAT(Did(), ElementsAre("start worker-0")) << "the reason is not asked";
}

TEST_F(KeeperLivesTest, OneThatIsNotThereIsNotLost) {
  RunToTraining();
  deaf_ = true;
  Exit("ps-0", kKilled);
  view_.nodes = {{.name = "ps-0", .state = NodeState::kLost, .start = StartNumber(1)},
                 {.name = "ps-7", .state = NodeState::kLost, .start = StartNumber(1)}};
  Step(MasterAnswered{view_, now_});
  EXPECT_THAT(Did(), IsEmpty());
  // A successor that has yet to hear of what runs.
  RunToTraining();
  Begin(keeper_->plan());
  lost_ = {"ps-0"};
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(KeeperLivesTest, AnEndThatWasExcusedIsNotExcusedTwice) {
  RunToTraining();
  Exit("worker-0", kCrashed);
  Step(OrderRestart("worker-0"));
  Exit("worker-0", kTerminated);
  ASSERT_EQ(Kept("worker-0").state, KeptNode::State::kWaiting) << "it has hardly lived";
  EXPECT_EQ(Kept("worker-0").exits, 1u);
  Step(OrderRestart("worker-0"));
  EXPECT_EQ(Kept("worker-0").exits, 1u) << "the crash counts";
}

TEST_F(KeeperLivesTest, AStartThatTheMachineWasTooShortForTakesNoCrashBack) {
  RunToTraining();
  short_ = true;
  Exit("worker-0", kCrashed);
  ASSERT_EQ(Kept("worker-0").state, KeptNode::State::kWaiting);
  ASSERT_EQ(Kept("worker-0").exits, 1u);
  Step(OrderRestart("worker-0"));
  EXPECT_EQ(Kept("worker-0").exits, 1u) << "the start that failed was not counted";
}

TEST_F(KeeperLivesTest, AWorkerThatIsToLeaveIsStoppedInADrainOfTheJobToo) {
  RunToTraining();
  Step(EndNode{"worker-1"});
  view_.state = JobState::kDraining;
  drains_ = {{"worker-1", DrainState::kDraining}};
  Answer();
  Did();
  Pass(options_.drain_timeout);
  EXPECT_THAT(Did(), ElementsAre("stop worker-1"));
}

// The keeper's own pauses.

TEST_F(KeeperLivesTest, ItsOwnPauseIsNoTimeForStacks) {
  RunToTraining();
  lost_ = {"ps-0"};
  Answer();
  EXPECT_THAT(Did(), ElementsAre("dump ps-0"));
  StandStill(seconds(3600));
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
  // The first two seconds count as for any step that comes late.
  Pass(options_.dump_wait - seconds(2));
  EXPECT_THAT(Did(), ElementsAre("kill ps-0"));
}

TEST_F(KeeperLivesTest, ItsOwnPauseIsNoTimeForWorkersToEndIn) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  StandStill(seconds(3600));
  EXPECT_THAT(Did(), IsEmpty());
  Pass(options_.finish_wait - seconds(3));
  EXPECT_THAT(Did(), IsEmpty());
  Pass(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("stop worker-0", "stop worker-1"));
}

TEST_F(KeeperLivesTest, ItsOwnPauseMakesNobodyYounger) {
  RunToTraining();
  const TimePoint started_at = Kept("worker-0").started_at;
  const TimePoint asked_at = now_;
  StandStill(seconds(3600));
  EXPECT_EQ(Kept("worker-0").started_at, started_at);
  // An earlier question to the master counts.
  view_.nodes = {{.name = "ps-0", .state = NodeState::kLost, .start = StartNumber(1)}};
  Step(MasterAnswered{view_, asked_at});
  EXPECT_THAT(Did(), ElementsAre("dump ps-0"));
}

TEST_F(KeeperLivesTest, AStepThatComesALittleLateIsNoPause) {
  RunToTraining();
  lost_ = {"ps-0"};
  Answer();
  Did();
  StandStill(seconds(2));
  EXPECT_THAT(Did(), IsEmpty());
  StandStill(seconds(2));
  Answer();
  EXPECT_THAT(Did(), ElementsAre("kill ps-0"));
}

}  // namespace
}  // namespace muster::scaler
