#include "scaler/core/node_keeper.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>

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

constexpr ExitStatus kKilled{.signal = SIGKILL};
constexpr ExitStatus kCrashed{.signal = SIGSEGV};
constexpr ExitStatus kClean{};
const SlotRecord kEnded{
    .incarnation = 1, .computing_token = {}, .minibatches_started = 0, .ended = true};

/// Plays the shell: starts nodes at once, tells the master at once unless it is `deaf_`, and keeps
/// what was asked for.
class NodeKeeperTest : public ::testing::Test {
 protected:
  NodeKeeperTest() {
    options_.restarts = {
        .crash_loop_exits = 3, .backoff_initial = milliseconds(500), .backoff_max = seconds(30)};
    view_.phase = JobPhase::kRunning;
  }

  void Begin() { Begin(NewPlan("r", 1, 2)); }
  void Begin(const Plan& plan) { keeper_.emplace(options_, plan); }

  void Step(const KeeperEvent& event) {
    std::vector<std::string> started, heard;
    for (const KeeperEffect& effect : keeper_->Step(event, now_)) {
      if (const auto* start = std::get_if<StartNode>(&effect)) {
        did_.push_back("start " + start->node);
        starts_[start->node] = start->start;
        started.push_back(start->node);
      } else if (const auto* stop = std::get_if<StopNode>(&effect)) {
        did_.push_back("stop " + stop->node);
      } else if (const auto* kill = std::get_if<KillNode>(&effect)) {
        did_.push_back("kill " + kill->node);
      } else if (const auto* release = std::get_if<ReleaseNode>(&effect)) {
        released_.push_back(release->node);
      } else if (const auto* tell = std::get_if<TellMaster>(&effect)) {
        told_.push_back(*tell);
        if (tell->exited && !deaf_) heard.push_back(tell->node);
      } else if (const auto* cancel = std::get_if<AskCancel>(&effect)) {
        did_.push_back("cancel");
        cancel_reason_ = cancel->reason;
      }
    }
    for (const std::string& node : started) {
      pids_[node] = ++last_pid_;
      Step(NodeStarted{node, pids_[node]});
    }
    for (const std::string& node : heard) Step(ExitHeard{node});
  }

  void After(milliseconds time) {
    constexpr milliseconds kTick{1'000};
    for (; time > kTick; time -= kTick) StandStill(kTick);
    StandStill(time);
  }
  /// One tick after `gap`: more than two seconds, and the keeper takes it for its own pause.
  void StandStill(milliseconds gap) {
    now_ += gap;
    Step(Tick{});
  }

  /// The master answers; every node that runs is "running" unless `lost_` names it.
  void Answer() {
    view_.nodes.clear();
    for (const auto& [name, pid] : pids_) {
      if (pid == 0 || std::count(unseen_.begin(), unseen_.end(), name) > 0) continue;
      view_.nodes.push_back(
          {name, std::count(lost_.begin(), lost_.end(), name) ? "lost" : "running", pid});
    }
    Step(MasterAnswered{view_, now_});
  }

  /// Time passes in which the master answers every second.
  void Pass(milliseconds time) {
    for (; time > seconds(1); time -= seconds(1)) Pass(seconds(1));
    now_ += time;
    Answer();
  }

  void Progress() {
    ++view_.done_seq;
    Answer();
  }

  void Exit(const std::string& node, ExitStatus exit, std::optional<SlotRecord> slot = {}) {
    const uint64_t pid = std::exchange(pids_[node], 0);
    Step(NodeExited{node, pid, exit, slot, "last words\n"});
  }

  std::vector<std::string> Did() { return std::exchange(did_, {}); }
  NodePlan PlanOf(const std::string& node) { return keeper_->plan().nodes.at(node); }

  void RunToTraining() {
    Begin();
    Step(Tick{});
    Answer();
    Answer();
    Did();
    told_.clear();
  }

  KeeperOptions options_;
  std::optional<NodeKeeper> keeper_;
  TimePoint now_{seconds(100)};
  MasterView view_;
  bool deaf_ = false;
  std::map<std::string, uint64_t> pids_;
  std::map<std::string, uint32_t> starts_;
  uint64_t last_pid_ = 1000;
  std::vector<std::string> lost_;
  std::vector<std::string> unseen_;
  std::vector<std::string> did_;
  std::vector<std::string> released_;
  std::vector<TellMaster> told_;
  std::string cancel_reason_;
};

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
  EXPECT_EQ(told_[0].restarts, 0u);
}

TEST_F(NodeKeeperTest, RelaunchesAtOnceThenWithBackOffAndTellsTheMasterTheShard) {
  RunToTraining();
  Exit("worker-0", kCrashed,
       SlotRecord{.incarnation = 9,
                  .computing_token = LeaseToken::FromValue(77),
                  .minibatches_started = 5,
                  .ended = false});
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  EXPECT_THAT(released_, ElementsAre("worker-0"));
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_TRUE(told_[0].exited);
  EXPECT_EQ(told_[0].exit, kCrashed);
  EXPECT_EQ(told_[0].computing_token, 77u);
  EXPECT_EQ(told_[0].incarnation, 9u);
  EXPECT_EQ(told_[1].restarts, 1u);
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
  EXPECT_EQ(told_[0].restarts, 2u);
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
  EXPECT_THAT(cancel_reason_, HasSubstr("worker-0 ended 3 times"));
  EXPECT_THAT(cancel_reason_, HasSubstr("SIGSEGV"));
  EXPECT_THAT(cancel_reason_, HasSubstr("last words"));
  Did();
  Exit("worker-1", kKilled);
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("cancel")) << "asked again, and nothing is started any more";
  view_.phase = JobPhase::kFailed;
  Answer();
  EXPECT_THAT(Did(), ElementsAre("stop ps-0"));
  Exit("ps-0", kClean);
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
  EXPECT_EQ(keeper_->outcome()->state, KeeperOutcome::State::kBadInput);
  EXPECT_EQ(keeper_->outcome()->reason, "ps-0 refused to start:\n    last words");
}

TEST_F(NodeKeeperTest, LostServerIsKilledAtOnceLostWorkerLater) {
  RunToTraining();
  lost_ = {"ps-0", "worker-0"};
  Answer();
  EXPECT_THAT(Did(), ElementsAre("kill ps-0"));
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
  Pass(seconds(59));
  EXPECT_THAT(Did(), IsEmpty());
  now_ += seconds(1);
  Answer();
  EXPECT_THAT(Did(), ElementsAre("kill worker-0"));
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
  const uint64_t old_pid = pids_["ps-0"];
  Exit("ps-0", kKilled);
  Did();
  view_.nodes = {{"ps-0", "lost", old_pid}};
  Step(MasterAnswered{view_, now_});
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(NodeKeeperTest, SuccessWaitsForWorkersThenEndsServers) {
  RunToTraining();
  Exit("worker-0", kClean, kEnded);
  EXPECT_THAT(Did(), IsEmpty()) << "saw the end: not started again";
  EXPECT_EQ(PlanOf("worker-0").state, NodePlan::State::kFinished);
  view_.phase = JobPhase::kSucceeded;
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
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
  view_.phase = JobPhase::kSucceeded;
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
  view_.phase = JobPhase::kSucceeded;
  Answer();
  Pass(options_.finish_wait);
  EXPECT_THAT(Did(), UnorderedElementsAre("stop worker-0", "stop worker-1"));
}

TEST_F(NodeKeeperTest, JobThatIsOverStartsNothing) {
  Begin();
  view_.phase = JobPhase::kSucceeded;
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
  view_.phase = JobPhase::kDraining;
  Answer();
  Exit("worker-0", kKilled);
  EXPECT_THAT(Did(), IsEmpty());
  Exit("ps-0", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start ps-0"));
  view_.phase = JobPhase::kDrained;
  Answer();
  Exit("worker-1", kClean);
  EXPECT_THAT(Did(), ElementsAre("stop ps-0"));
  Exit("ps-0", kClean);
  EXPECT_TRUE(keeper_->outcome().has_value());
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
}

TEST_F(NodeKeeperTest, ItsOwnPauseIsNobodysSilence) {
  RunToTraining();
  lost_ = {"worker-1"};
  Answer();
  StandStill(seconds(3600));
  Answer();
  EXPECT_THAT(Did(), IsEmpty()) << "nobody could be heard meanwhile";
  Pass(options_.worker_lost_max);
  EXPECT_THAT(Did(), Contains("kill worker-1")) << "but the time after it counts";
}

}  // namespace
}  // namespace muster::scaler
