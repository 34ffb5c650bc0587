#include "scaler/launcher/supervisor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>

namespace muster {
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

/// Plays the shell: starts nodes at once and keeps what was asked for.
class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() {
    options_.servers = 1;
    options_.workers = 2;
    options_.restarts = {
        .crash_loop_exits = 3, .backoff_initial = milliseconds(500), .backoff_max = seconds(30)};
    view_.phase = JobPhase::kRunning;
  }

  void Begin() { supervisor_.emplace(options_); }

  void Step(const SupervisorEvent& event) {
    std::vector<SupervisorEffect> effects = supervisor_->Step(event, now_);
    std::vector<std::string> started;
    for (const SupervisorEffect& effect : effects) {
      if (const auto* start = std::get_if<StartNode>(&effect)) {
        did_.push_back("start " + start->node);
        started.push_back(start->node);
      } else if (const auto* stop = std::get_if<StopNode>(&effect)) {
        did_.push_back("stop " + stop->node);
      } else if (const auto* kill = std::get_if<KillNode>(&effect)) {
        did_.push_back("kill " + kill->node);
      } else if (const auto* tell = std::get_if<TellMaster>(&effect)) {
        told_.push_back(*tell);
      } else if (std::holds_alternative<AskDrain>(effect)) {
        did_.push_back("drain");
      } else if (const auto* cancel = std::get_if<AskCancel>(&effect)) {
        did_.push_back("cancel");
        cancel_reason_ = cancel->reason;
      }
    }
    for (const std::string& node : started) {
      pids_[node] = ++last_pid_;
      Step(NodeStarted{node, pids_[node]});
    }
  }

  void After(milliseconds time) {
    constexpr milliseconds kTick{1'000};
    for (; time > kTick; time -= kTick) StandStill(kTick);
    StandStill(time);
  }
  /// One tick after `gap`: more than two seconds, and the supervisor takes it for its own pause.
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

  void RunToTraining() {
    Begin();
    Step(Tick{});
    Answer();
    Answer();
    Did();
    told_.clear();
  }

  SupervisorOptions options_;
  std::optional<Supervisor> supervisor_;
  TimePoint now_{seconds(100)};
  MasterView view_;
  std::map<std::string, uint64_t> pids_;
  uint64_t last_pid_ = 1000;
  std::vector<std::string> lost_;
  std::vector<std::string> unseen_;
  std::vector<std::string> did_;
  std::vector<TellMaster> told_;
  std::string cancel_reason_;
};

TEST_F(SupervisorTest, MasterFirstThenServersThenWorkers) {
  Begin();
  Step(Tick{});
  EXPECT_THAT(Did(), ElementsAre("start master"));
  After(seconds(5));
  EXPECT_THAT(Did(), IsEmpty());
  Answer();
  EXPECT_THAT(Did(), ElementsAre("start ps-0", "start worker-0", "start worker-1"));
  ASSERT_EQ(told_.size(), 4u);
  EXPECT_EQ(told_[0].node, "master");
  EXPECT_FALSE(told_[0].exited);
  EXPECT_EQ(told_[1].role, NodeRole::kServer);
  EXPECT_EQ(told_[1].pid, pids_["ps-0"]);
}

TEST_F(SupervisorTest, RelaunchesAtOnceThenWithBackOffAndTellsTheMasterTheShard) {
  RunToTraining();
  Exit("worker-0", kCrashed,
       SlotRecord{.incarnation = 9,
                  .computing_token = LeaseToken::FromValue(77),
                  .minibatches_started = 5,
                  .ended = false});
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_TRUE(told_[0].exited);
  EXPECT_EQ(told_[0].exit, kCrashed);
  EXPECT_EQ(told_[0].computing_token, 77u);
  EXPECT_EQ(told_[0].minibatches_started, 5u);
  EXPECT_EQ(told_[0].incarnation, 9u);
  EXPECT_EQ(told_[0].text, "last words\n");
  EXPECT_EQ(told_[1].restarts, 1u);
  Exit("worker-0", kCrashed);
  EXPECT_THAT(Did(), IsEmpty());
  After(milliseconds(499));
  EXPECT_THAT(Did(), IsEmpty());
  After(milliseconds(1));
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
  EXPECT_EQ(supervisor_->restarts(NodeRole::kWorker), 2u);
}

TEST_F(SupervisorTest, CrashLoopAsksTheMasterToEndTheJobAndNamesTheCause) {
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
  view_.phase = JobPhase::kFailed;
  Answer();
  Exit("worker-1", kClean);
  now_ += milliseconds(1);
  Answer();
  EXPECT_THAT(Did(), UnorderedElementsAre("stop ps-0", "stop master"));
  Exit("ps-0", kClean);
  EXPECT_FALSE(supervisor_->outcome().has_value());
  Exit("master", kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kFailed);
  EXPECT_THAT(supervisor_->outcome()->reason, HasSubstr("worker-0"));
}

TEST_F(SupervisorTest, ProgressInBetweenIsNoCrashLoop) {
  RunToTraining();
  for (int i = 0; i < 10; ++i) {
    Exit("worker-0", kKilled);
    EXPECT_THAT(Did(), ElementsAre("start worker-0"));
    Answer();
    Progress();
  }
}

TEST_F(SupervisorTest, ProgressOfOthersDoesNotExcuseANodeThatNeverCameUp) {
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

TEST_F(SupervisorTest, CrashLoopOfTheMasterEndsTheRunWithoutIt) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    Exit("master", {.signal = 0, .code = 1});
    After(seconds(5));
  }
  EXPECT_THAT(Did(), ::testing::IsSupersetOf({"stop ps-0", "stop worker-0", "stop worker-1"}));
  for (const char* node : {"ps-0", "worker-0", "worker-1"}) Exit(node, kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kFailed);
  EXPECT_THAT(supervisor_->outcome()->reason, HasSubstr("master ended 3 times"));
}

TEST_F(SupervisorTest, BadInputOfTheMasterIsNotTriedAgain) {
  Begin();
  Step(Tick{});
  Did();
  Exit("master", {.signal = 0, .code = 2});
  EXPECT_THAT(Did(), IsEmpty());
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kBadInput);
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 2);
  EXPECT_THAT(supervisor_->outcome()->reason, HasSubstr("last words"));
}

TEST_F(SupervisorTest, SilentMasterIsKilledBeforeAnotherIsStarted) {
  RunToTraining();
  After(milliseconds(9'999));
  EXPECT_THAT(Did(), IsEmpty());
  After(milliseconds(1));
  EXPECT_THAT(Did(), ElementsAre("kill master"));
  After(seconds(1));
  EXPECT_THAT(Did(), IsEmpty()) << "killed once";
  Exit("master", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start master"));
  After(seconds(11));
  EXPECT_THAT(Did(), IsEmpty()) << "a starting master has more time";
}

TEST_F(SupervisorTest, AnswerOfAFormerMasterSaysNothing) {
  RunToTraining();
  const TimePoint before = now_;
  now_ += seconds(1);
  Exit("master", kKilled);
  now_ += seconds(1);
  view_.phase = JobPhase::kFailed;
  Step(MasterAnswered{view_, before});
  EXPECT_THAT(Did(), ElementsAre("start master"));
}

TEST_F(SupervisorTest, LostServerIsKilledAtOnceLostWorkerLater) {
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

TEST_F(SupervisorTest, PausedWorkerThatComesBackIsLeftAlone) {
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

TEST_F(SupervisorTest, LostStateOfAFormerLifeDoesNotKillTheNewOne) {
  RunToTraining();
  const uint64_t old_pid = pids_["ps-0"];
  Exit("ps-0", kKilled);
  Did();
  view_.nodes = {{"ps-0", "lost", old_pid}};
  Step(MasterAnswered{view_, now_});
  EXPECT_THAT(Did(), IsEmpty());
}

TEST_F(SupervisorTest, SuccessWaitsForWorkersThenOneMoreAnswer) {
  RunToTraining();
  const SlotRecord ended{
      .incarnation = 1, .computing_token = {}, .minibatches_started = 0, .ended = true};
  Exit("worker-0", kClean, ended);
  EXPECT_THAT(Did(), IsEmpty()) << "saw the end: not started again";
  view_.phase = JobPhase::kSucceeded;
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
  now_ += seconds(1);
  Exit("worker-1", kClean, ended);
  EXPECT_THAT(Did(), IsEmpty());
  now_ += milliseconds(1);
  Answer();
  EXPECT_THAT(Did(), UnorderedElementsAre("stop ps-0", "stop master"));
  Exit("ps-0", kClean);
  Exit("master", kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 0);
}

TEST_F(SupervisorTest, WorkerThatDoesNotEndIsStoppedAfterAWhile) {
  RunToTraining();
  view_.phase = JobPhase::kSucceeded;
  Answer();
  Pass(options_.finish_wait);
  EXPECT_THAT(Did(), UnorderedElementsAre("stop worker-0", "stop worker-1"));
}

TEST_F(SupervisorTest, ExitZeroBeforeTheEndIsAnExitLikeAnother) {
  RunToTraining();
  Exit("worker-0", kClean,
       SlotRecord{
           .incarnation = 1, .computing_token = {}, .minibatches_started = 0, .ended = false});
  EXPECT_THAT(Did(), ElementsAre("start worker-0"));
}

TEST_F(SupervisorTest, DrainKeepsServersAndMasterAliveAndLetsWorkersGo) {
  RunToTraining();
  Step(DrainWanted{});
  EXPECT_THAT(Did(), ElementsAre("drain"));
  Exit("worker-0", kKilled);
  EXPECT_THAT(Did(), IsEmpty());
  Exit("ps-0", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start ps-0"));
  Exit("master", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start master"));
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("drain")) << "asked again: the master may have forgotten";
  view_.phase = JobPhase::kDrained;
  Answer();
  Exit("worker-1", kClean);
  now_ += milliseconds(1);
  Answer();
  Exit("ps-0", kClean);
  Exit("master", kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kDrained);
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 3);
}

TEST_F(SupervisorTest, DrainThatTakesTooLongIsStopped) {
  RunToTraining();
  Step(DrainWanted{});
  Did();
  view_.phase = JobPhase::kDraining;
  // The master ends leases after drain_timeout and may take as long again for its snapshots.
  Pass(2 * options_.drain_timeout);
  EXPECT_THAT(Did(), Not(Contains(HasSubstr("stop "))));
  Pass(options_.drain_slack);
  EXPECT_THAT(Did(), IsSupersetOf({"stop ps-0", "stop master", "stop worker-0", "stop worker-1"}));
}

TEST_F(SupervisorTest, SecondSignalKillsEverythingAtOnce) {
  RunToTraining();
  Step(DrainWanted{});
  Did();
  Step(StopWanted{});
  EXPECT_THAT(Did(), ::testing::IsSupersetOf(
                         {"kill master", "kill ps-0", "kill worker-0", "kill worker-1"}));
  for (const char* node : {"ps-0", "worker-0", "worker-1", "master"}) Exit(node, kKilled);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kStopped);
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 3);
}

TEST_F(SupervisorTest, CancelledByTheMaster) {
  RunToTraining();
  view_.phase = JobPhase::kCancelled;
  view_.reason = "asked for";
  Answer();
  Exit("worker-0", kClean);
  Exit("worker-1", kClean);
  now_ += milliseconds(1);
  Answer();
  Exit("ps-0", kClean);
  Exit("master", kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->reason, "asked for");
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 4);
}

TEST_F(SupervisorTest, ItsOwnPauseIsNotTheMastersSilence) {
  RunToTraining();
  lost_ = {"worker-1"};
  Answer();
  StandStill(seconds(3600));
  EXPECT_THAT(Did(), IsEmpty()) << "nobody could answer meanwhile";
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
  After(options_.master_silence_max);
  EXPECT_THAT(Did(), Contains("kill master")) << "but the time after it counts";
}

}  // namespace
}  // namespace muster
