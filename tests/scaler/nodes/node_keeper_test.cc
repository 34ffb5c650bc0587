#include "scaler/nodes/node_keeper.h"

#include <gmock/gmock.h>

#include "tests/scaler/nodes/node_keeper_fixture.h"

namespace muster::scaler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class NodeKeeperTest : public NodeKeeperFixture {};

TEST_F(NodeKeeperTest, ServersThenWorkersWhenTheMasterAnswers) {
  Begin();
  Step(Tick{});
  After(seconds(5));
  EXPECT_THAT(Did(), IsEmpty());
  Answer();
  EXPECT_THAT(Did(), ElementsAre("start ps-0", "start worker-0", "start worker-1"));
  ASSERT_EQ(told_.size(), 3u);
  EXPECT_EQ(told_[0].role, NodeRole::kServer);
  EXPECT_EQ(told_[0].pid, pids_["ps-0"]);
  EXPECT_EQ(told_[0].start, StartNumber(1));
}

TEST_F(NodeKeeperTest, ARunThatNobodyWouldContinueIsDrainedUntilTheMasterShowsIt) {
  RunToTraining();
  Step(RunAbandoned{"nobody is there"});
  EXPECT_THAT(Did(), ElementsAre("drain job"));
  Step(RunAbandoned{"nobody is there"});
  EXPECT_THAT(Did(), IsEmpty()) << "it is asked already";
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("drain job"));
  Exit("worker-0", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start worker-0")) << "until it drains, the job goes on";
  view_.state = JobState::kDraining;
  Answer();
  Step(RunAbandoned{"nobody is there"});
  After(seconds(5));
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(NodeKeeperTest, RestartsAtOnceThenWithBackOffAndTellsTheMasterTheShard) {
  RunToTraining();
  Exit("worker-0", kCrashed,
       SlotRecord{.incarnation = 9, .computing = {{LeaseToken::FromValue(77), 5}}, .ended = false});
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  EXPECT_THAT(released_, ElementsAre("worker-0"));
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_TRUE(told_[0].exited);
  EXPECT_EQ(told_[0].exit, kCrashed);
  EXPECT_EQ(told_[0].computing_token, 77u);
  EXPECT_EQ(told_[0].incarnation, 9u);
  EXPECT_EQ(told_[1].start, StartNumber(2));
  EXPECT_EQ(starts_["worker-0"], 2u);
  Exit("worker-0", kCrashed);
  EXPECT_THAT(Did(), IsEmpty());
  After(milliseconds(499));
  EXPECT_THAT(Did(), IsEmpty());
  After(milliseconds(1));
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
}

TEST_F(NodeKeeperTest, NothingIsDecidedOfAnExitBeforeTheMasterHasHeard) {
  RunToTraining();
  deaf_ = true;
  Exit("worker-0", kCrashed);
  After(seconds(60));
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_THAT(released_, IsEmpty());
  EXPECT_EQ(PlanOf("worker-0").state, NodePlan::State::kRunning)
      << "a successor finds the exit again, and tells it again";
  EXPECT_EQ(PlanOf("worker-0").exits, 0u);
  Step(ExitHeard{"worker-0"});
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  EXPECT_THAT(released_, ElementsAre("worker-0"));
  EXPECT_EQ(PlanOf("worker-0").starts, 2u);
  EXPECT_EQ(PlanOf("worker-0").exits, 1u);
}

TEST_F(NodeKeeperTest, PlanIsThereBeforeTheEffectsOfAStep) {
  Begin();
  view_.nodes.clear();
  const std::vector<KeeperEffect> effects = keeper_->Step(MasterAnswered{view_, now_}, now_);
  EXPECT_FALSE(effects.empty());
  EXPECT_EQ(PlanOf("ps-0"),
            (NodePlan{.role = NodeRole::kServer, .state = NodePlan::State::kRunning, .starts = 1}));
  keeper_->Step(NodeStarted{"ps-0", 77}, now_);
  EXPECT_EQ(PlanOf("ps-0").pid, 77u);
}

TEST_F(NodeKeeperTest, AdoptedNodesAreNotStartedAgain) {
  Plan plan = NewPlan("r", 1, 2);
  plan.nodes["ps-0"] = {
      .role = NodeRole::kServer, .state = NodePlan::State::kRunning, .starts = 3, .pid = 50};
  plan.nodes["worker-0"].state = NodePlan::State::kFinished;
  plan.nodes["worker-1"] = {.state = NodePlan::State::kIdle, .starts = 4, .exits = 1, .pid = 51};
  Begin(plan);
  pids_["ps-0"] = 50;
  Step(NodeStarted{"ps-0", 50});
  Answer();
  EXPECT_THAT(Did(), ElementsAre("start worker-1"));
  EXPECT_EQ(starts_["worker-1"], 5u);
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_[0].node, "ps-0") << "the master may not have heard of it";
  EXPECT_EQ(told_[0].start, StartNumber(3));
  Exit("ps-0", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start ps-0"));
  EXPECT_EQ(starts_["ps-0"], 4u);
}

TEST_F(NodeKeeperTest, ExitsWithoutProgressAreCountedOnBySuccessors) {
  RunToTraining();
  for (int life = 0; life < 3; ++life) {
    Exit("worker-0", kCrashed);
    if (life < 2) {
      After(seconds(2));
      Answer();
      Begin(keeper_->plan());
      Answer();
    }
  }
  EXPECT_THAT(cancel_reason_, HasSubstr("worker-0 ended 3 times"));
}

TEST_F(NodeKeeperTest, ProgressThatWasSeenIsRememberedBySuccessors) {
  RunToTraining();
  Exit("worker-0", kCrashed);
  Answer();
  Progress();
  EXPECT_EQ(PlanOf("worker-0").exits, 0u);
}

TEST_F(NodeKeeperTest, CrashLoopAsksTheMasterToEndTheJobAndNamesTheCause) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    Answer();
    Exit("worker-0", kCrashed);
    After(seconds(2));
  }
  EXPECT_THAT(Did(), Contains("cancel"));
  EXPECT_EQ(Kept("worker-0").state, KeptNode::State::kFinished);
  EXPECT_THAT(cancel_reason_, HasSubstr("worker-0 ended 3 times"));
  EXPECT_THAT(cancel_reason_, HasSubstr("SIGSEGV"));
  EXPECT_THAT(cancel_reason_, HasSubstr("last words"));
  Did();
  Exit("worker-1", kKilled);
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("cancel")) << "asked again, and nothing is started any more";
  view_.state = JobState::kFailed;
  Answer();
  EXPECT_THAT(Did(), ElementsAre("stop ps-0"));
  Exit("ps-0", kClean);
  ASSERT_TRUE(keeper_->outcome().has_value());
  EXPECT_EQ(keeper_->outcome()->state, KeeperOutcome::State::kJobOver);
}

TEST_F(NodeKeeperTest, SuccessorsAskAgainForTheEndOfAJobThatWasGivenUp) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    Answer();
    Exit("ps-0", kCrashed);
    if (i < 2) After(seconds(2));
  }
  EXPECT_THAT(Did(), Contains("cancel"));
  const std::string reason = std::exchange(cancel_reason_, "");
  Begin(keeper_->plan());
  for (const char* worker : {"worker-0", "worker-1"}) Step(NodeStarted{worker, pids_[worker]});
  Answer();
  EXPECT_THAT(Did(), ElementsAre("cancel")) << "the first scaler may have died before it could";
  EXPECT_EQ(cancel_reason_, reason);
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("cancel")) << "until the master has done it";
  Exit("worker-0", kKilled);
  EXPECT_THAT(Did(), IsEmpty()) << "nothing is started any more";
  view_.state = JobState::kFailed;
  Answer();
  Exit("worker-1", kClean);
  ASSERT_TRUE(keeper_->outcome().has_value());
  EXPECT_EQ(keeper_->outcome()->state, KeeperOutcome::State::kJobOver);
}

TEST_F(NodeKeeperTest, ProgressInBetweenIsNoCrashLoop) {
  RunToTraining();
  for (int i = 0; i < 10; ++i) {
    Exit("worker-0", kKilled);
    EXPECT_THAT(Did(), ElementsAre("start worker-0"));
    Answer();
    Progress();
  }
}

TEST_F(NodeKeeperTest, ProgressOfOthersDoesNotExcuseANodeThatNeverCameUp) {
  RunToTraining();
  unseen_ = {"worker-0"};
  for (int i = 0; i < 3; ++i) {
    Exit("worker-0", kCrashed);
    Progress();
    After(seconds(5));
    Progress();
  }
  // The first exit ended a life in which the master did see it; two more make three.
  EXPECT_THAT(Did(), Contains("cancel"));
}

TEST_F(NodeKeeperTest, BadInputOfAServerAtItsFirstStartIsNotTriedAgain) {
  Begin();
  Answer();
  Did();
  Exit("ps-0", {.signal = 0, .code = kBadInputExit});
  EXPECT_THAT(Did(), UnorderedElementsAre("stop worker-0", "stop worker-1"));
  Exit("worker-0", kClean);
  Exit("worker-1", kClean);
  ASSERT_TRUE(keeper_->outcome().has_value());
  EXPECT_EQ(PlanOf("ps-0").state, NodePlan::State::kFinished);
  EXPECT_EQ(keeper_->outcome()->state, KeeperOutcome::State::kBadInput);
  EXPECT_EQ(keeper_->outcome()->reason, "ps-0 refused to start:\n    last words");
}

TEST_F(NodeKeeperTest, LostNodesAreKilledWithTheirStacksServersAtOnceWorkersLater) {
  RunToTraining();
  lost_ = {"ps-0", "worker-0"};
  Answer();
  EXPECT_THAT(Did(), ElementsAre("dump ps-0"));
  Pass(options_.dump_wait - milliseconds(1));
  EXPECT_THAT(Did(), IsEmpty()) << "its stacks take a while";
  Pass(milliseconds(1));
  EXPECT_THAT(Did(), ElementsAre("kill ps-0"));
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
  Pass(options_.worker_lost_max - options_.dump_wait - milliseconds(1));
  EXPECT_THAT(Did(), IsEmpty());
  Pass(milliseconds(1));
  EXPECT_THAT(Did(), ElementsAre("dump worker-0"));
  Pass(options_.dump_wait);
  EXPECT_THAT(Did(), ElementsAre("kill worker-0"));
}

TEST_F(NodeKeeperTest, ALostServerThatIsBackBeforeItsEndLives) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    lost_ = {"ps-0"};
    Answer();
    EXPECT_THAT(Did(), ElementsAre("dump ps-0"));
    Pass(seconds(2));
    lost_.clear();
    Answer();
    Pass(seconds(2));
    EXPECT_THAT(Did(), IsEmpty());
  }
}

TEST_F(NodeKeeperTest, SuccessorsBeginAgainWithALostNode) {
  RunToTraining();
  lost_ = {"ps-0"};
  Answer();
  Pass(seconds(2));
  Did();
  Begin(keeper_->plan());
  for (const auto& [name, pid] : pids_) Step(NodeStarted{name, pid});
  Answer();
  EXPECT_THAT(Did(), ElementsAre("dump ps-0"));
  Pass(options_.dump_wait);
  EXPECT_THAT(Did(), ElementsAre("kill ps-0"));
}

TEST_F(NodeKeeperTest, PausedWorkerThatComesBackIsLeftAlone) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    lost_ = {"worker-0"};
    Answer();
    Pass(seconds(40));
    lost_.clear();
    Answer();
  }
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(NodeKeeperTest, LostStateOfAFormerLifeDoesNotKillTheNewOne) {
  RunToTraining();
  // In a container the pid comes again.
  last_pid_ = pids_["ps-0"] - 1;
  Exit("ps-0", kKilled);
  Did();
  ASSERT_EQ(Kept("ps-0").starts, 2u);
  view_.nodes = {{.name = "ps-0", .state = NodeState::kLost, .start = StartNumber(1)}};
  Step(MasterAnswered{view_, now_});
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(NodeKeeperTest, SuccessWaitsForWorkersThenEndsServers) {
  RunToTraining();
  Exit("worker-0", kClean, kEnded);
  view_.state = JobState::kSucceeded;
  Answer();
  EXPECT_THAT(Did(), IsEmpty()) << "saw the end: not started again";
  EXPECT_EQ(PlanOf("worker-0").state, NodePlan::State::kFinished);
  now_ += seconds(1);
  Exit("worker-1", kClean, kEnded);
  EXPECT_THAT(Did(), ElementsAre("stop ps-0"));
  EXPECT_FALSE(keeper_->outcome().has_value());
  Exit("ps-0", kClean);
  ASSERT_TRUE(keeper_->outcome().has_value());
  EXPECT_EQ(keeper_->outcome()->state, KeeperOutcome::State::kJobOver);
}

TEST_F(NodeKeeperTest, TheEndWaitsForTheMasterToHearButNotForEver) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  for (const char* node : {"worker-0", "worker-1"}) Exit(node, kClean, kEnded);
  deaf_ = true;
  Exit("ps-0", kClean);
  EXPECT_FALSE(keeper_->outcome().has_value());
  After(options_.report_wait);
  EXPECT_TRUE(keeper_->outcome().has_value());
}

TEST_F(NodeKeeperTest, WorkerThatDoesNotEndIsStoppedAfterAWhile) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  Pass(options_.finish_wait);
  EXPECT_THAT(Did(), UnorderedElementsAre("stop worker-0", "stop worker-1"));
}

TEST_F(NodeKeeperTest, JobThatIsOverStartsNothing) {
  Begin();
  view_.state = JobState::kSucceeded;
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_TRUE(keeper_->outcome().has_value());
}

TEST_F(NodeKeeperTest, ExitZeroBeforeTheEndIsAnExitLikeAnother) {
  RunToTraining();
  SlotRecord slot = kEnded;
  slot.ended = false;
  Exit("worker-0", kClean, slot);
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
}

TEST_F(NodeKeeperTest, DrainKeepsServersAliveAndLetsWorkersGo) {
  RunToTraining();
  view_.state = JobState::kDraining;
  Answer();
  Exit("worker-0", kKilled);
  EXPECT_THAT(Did(), IsEmpty());
  Exit("ps-0", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start ps-0"));
  view_.state = JobState::kDrained;
  Answer();
  Exit("worker-1", kClean);
  EXPECT_THAT(Did(), ElementsAre("stop ps-0"));
  Exit("ps-0", kClean);
  EXPECT_TRUE(keeper_->outcome().has_value());
}

TEST_F(NodeKeeperTest, AMachineThatIsShortOfSomethingIsNobodysCrash) {
  RunToTraining();
  short_ = true;
  Exit("worker-0", kCrashed);
  std::vector<milliseconds> waited;
  for (int i = 0; i < 9; ++i) {
    const TimePoint since = now_;
    const uint32_t starts = starts_["worker-0"];
    for (int i = 0; i < 100 && starts_["worker-0"] == starts; ++i) Pass(milliseconds(500));
    waited.push_back(std::chrono::duration_cast<milliseconds>(now_ - since));
  }
  EXPECT_THAT(waited, ElementsAre(milliseconds(500), seconds(1), seconds(2), seconds(4), seconds(8),
                                  seconds(16), seconds(30), seconds(30), seconds(30)));
  EXPECT_THAT(delay_reason_, HasSubstr("Too many open files); trying again in 30 s"));
  EXPECT_EQ(cancel_reason_, "");
  EXPECT_EQ(PlanOf("worker-0").exits, 1u) << "the crash alone";
  EXPECT_EQ(told_.back().exit.code, 126) << "the master hears of it";
  short_ = false;
  Pass(seconds(31));
  EXPECT_EQ(Kept("worker-0").state, KeptNode::State::kRunning);
  // The shortage is over, so the next start is tried at once.
  short_ = true;
  Did();
  Exit("worker-1", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start worker-1", "start worker-1", "delay worker-1"));
  short_ = false;
  Pass(seconds(1));
  Did();
  short_ = true;
  Exit("worker-0", kKilled);
  Pass(milliseconds(500));
  EXPECT_THAT(Did(), ElementsAre("start worker-0", "start worker-0", "delay worker-0"))
      << "the one that had to wait before, too";
}

TEST_F(NodeKeeperTest, ToldToStopEndsEverything) {
  RunToTraining();
  Step(StopWanted{});
  EXPECT_THAT(Did(), UnorderedElementsAre("stop ps-0", "stop worker-0", "stop worker-1"));
  Step(StopWanted{});
  EXPECT_THAT(Did(), IsEmpty());
  for (const char* node : {"ps-0", "worker-0", "worker-1"}) Exit(node, kKilled);
  ASSERT_TRUE(keeper_->outcome().has_value());
  EXPECT_EQ(keeper_->outcome()->state, KeeperOutcome::State::kStopped);
  for (const auto& [name, node] : keeper_->plan().nodes) {
    EXPECT_EQ(node.state, NodePlan::State::kIdle) << name << ": a successor starts it again";
  }
}

TEST_F(NodeKeeperTest, ItsOwnPauseIsNobodysSilence) {
  RunToTraining();
  lost_ = {"worker-1"};
  Answer();
  StandStill(seconds(3600));
  Answer();
  EXPECT_THAT(Did(), IsEmpty()) << "no node could be heard meanwhile";
  Pass(options_.worker_lost_max + options_.dump_wait);
  EXPECT_THAT(Did(), Contains("kill worker-1")) << "but the time after it counts";
}

}  // namespace
}  // namespace muster::scaler
