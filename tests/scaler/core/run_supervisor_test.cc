#include "scaler/core/run_supervisor.h"

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

constexpr ExitStatus kKilled{.signal = SIGKILL};
constexpr ExitStatus kClean{};
constexpr ExitStatus kRefused{.signal = 0, .code = 2};

/// Plays the shell: starts processes at once and keeps what was asked for.
class RunSupervisorTest : public ::testing::Test {
 protected:
  RunSupervisorTest() {
    options_.restarts = {
        .crash_loop_exits = 3, .backoff_initial = milliseconds(500), .backoff_max = seconds(30)};
    view_.phase = JobPhase::kRunning;
  }

  void Begin() { supervisor_.emplace(options_); }

  void Step(const RunEvent& event) {
    std::vector<std::string> started;
    for (const RunEffect& effect : supervisor_->Step(event, now_)) {
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
      } else if (std::holds_alternative<EndNodes>(effect)) {
        did_.push_back("end nodes");
      } else if (const auto* cancel = std::get_if<AskCancel>(&effect)) {
        did_.push_back("cancel");
        cancel_reason_ = cancel->reason;
      } else if (const auto* note = std::get_if<Note>(&effect)) {
        notes_.push_back(note->text);
      }
    }
    for (const std::string& node : started) {
      if (short_) {
        Step(NodeExited{.node = node,
                        .exit = {.signal = 0, .code = 126},
                        .last_words = "cannot create a pipe: Too many open files\n",
                        .not_started = true});
        continue;
      }
      pids_[node] = ++last_pid_;
      Step(NodeStarted{node, pids_[node]});
    }
  }

  /// Time passes in which the scaler beats, unless it `silent_`, and the master does not answer.
  void After(milliseconds time) {
    constexpr milliseconds kTick{1'000};
    for (; time > milliseconds(0); time -= kTick) {
      now_ += std::min(time, kTick);
      if (!silent_) Step(ScalerBeat{});
      Step(Tick{});
    }
  }
  /// One tick after `gap`: more than two seconds, and the supervisor takes it for its own pause.
  void StandStill(milliseconds gap) {
    now_ += gap;
    Step(Tick{});
  }
  void Answer() { Step(MasterAnswered{view_, now_}); }
  /// Time passes in which the master answers every second.
  void Pass(milliseconds time) {
    for (; time > milliseconds(0); time -= seconds(1)) {
      After(std::min(time, milliseconds(1'000)));
      Answer();
    }
  }
  void Progress() {
    ++view_.done_seq;
    Answer();
  }

  void Exit(const std::string& node, ExitStatus exit) {
    Step(NodeExited{node, std::exchange(pids_[node], 0), exit, {}, "last words\n"});
  }

  std::vector<std::string> Did() { return std::exchange(did_, {}); }

  void RunToTraining() {
    Begin();
    Step(Tick{});
    Answer();
    Step(ScalerBeat{});
    Answer();
    Did();
    told_.clear();
  }
  /// The job has ended, the scaler with it, and the last answer comes.
  void ExpectEnd(RunOutcome::State state) {
    Exit("scaler", kClean);
    now_ += milliseconds(1);
    Answer();
    EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
    EXPECT_FALSE(supervisor_->outcome().has_value());
    Exit("master", kClean);
    ASSERT_TRUE(supervisor_->outcome().has_value());
    EXPECT_EQ(supervisor_->outcome()->state, state);
  }

  RunSupervisorOptions options_;
  std::optional<RunSupervisor> supervisor_;
  TimePoint now_{seconds(100)};
  MasterView view_;
  bool silent_ = false;
  bool short_ = false;  // the machine, of what a start needs
  std::map<std::string, uint64_t> pids_;
  uint64_t last_pid_ = 1000;
  std::vector<std::string> did_;
  std::vector<std::string> notes_;
  std::vector<TellMaster> told_;
  std::string cancel_reason_;
};

TEST_F(RunSupervisorTest, MasterFirstThenTheScaler) {
  Begin();
  Step(Tick{});
  EXPECT_THAT(Did(), ElementsAre("start master"));
  After(seconds(5));
  EXPECT_THAT(Did(), IsEmpty());
  Answer();
  EXPECT_THAT(Did(), ElementsAre("start scaler"));
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[0].node, "master");
  EXPECT_FALSE(told_[0].exited);
  EXPECT_EQ(told_[1].role, NodeRole::kScaler);
  EXPECT_EQ(told_[1].pid, pids_["scaler"]);
}

TEST_F(RunSupervisorTest, RelaunchesAtOnceThenWithBackOffAndTellsTheMaster) {
  for (const char* node : {"scaler", "master"}) {
    RunToTraining();
    Exit(node, kKilled);
    EXPECT_THAT(Did(), ElementsAre(fmt::format("start {}", node)));
    ASSERT_EQ(told_.size(), 2u);
    EXPECT_TRUE(told_[0].exited);
    EXPECT_EQ(told_[0].exit, kKilled);
    EXPECT_EQ(told_[0].text, "last words\n");
    EXPECT_EQ(told_[1].start, StartNumber(2));
    Exit(node, kKilled);
    EXPECT_THAT(Did(), IsEmpty());
    After(milliseconds(499));
    EXPECT_THAT(Did(), IsEmpty());
    After(milliseconds(1));
    EXPECT_THAT(Did(), ElementsAre(fmt::format("start {}", node)));
    EXPECT_EQ(supervisor_->restarts(std::string(node) == "master" ? NodeRole::kMaster
                                                                  : NodeRole::kScaler),
              2u);
    pids_.clear();
  }
}

TEST_F(RunSupervisorTest, CrashLoopOfTheScalerAsksTheMasterToEndTheJobAndNamesTheCause) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    Answer();
    Exit("scaler", kKilled);
    After(seconds(2));
  }
  EXPECT_THAT(Did(), Contains("cancel"));
  EXPECT_THAT(cancel_reason_, HasSubstr("scaler ended 3 times"));
  EXPECT_THAT(cancel_reason_, HasSubstr("SIGKILL"));
  EXPECT_THAT(cancel_reason_, HasSubstr("last words"));
  view_.phase = JobPhase::kFailed;
  Answer();
  now_ += milliseconds(1);
  Answer();
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master")) << "nobody is there to end the nodes";
  Exit("master", kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kFailed);
  EXPECT_THAT(supervisor_->outcome()->reason, HasSubstr("scaler ended 3 times"));
}

TEST_F(RunSupervisorTest, ProgressInBetweenIsNoCrashLoop) {
  RunToTraining();
  for (int i = 0; i < 10; ++i) {
    Exit("scaler", kKilled);
    EXPECT_THAT(Did(), ElementsAre("start scaler"));
    Step(ScalerBeat{});
    Progress();
  }
}

TEST_F(RunSupervisorTest, ProgressOfTheJobDoesNotExcuseAScalerThatNeverCameUp) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    Exit("scaler", kKilled);
    silent_ = true;
    After(seconds(5));
    Progress();
  }
  EXPECT_THAT(Did(), Contains("cancel"));
}

TEST_F(RunSupervisorTest, CrashLoopOfTheMasterEndsTheRunWithoutIt) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    Exit("master", {.signal = 0, .code = 1});
    After(seconds(5));
  }
  EXPECT_THAT(Did(), Contains("stop scaler"));
  Exit("scaler", kClean);
  EXPECT_THAT(Did(), ElementsAre("end nodes"));
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kFailed);
  EXPECT_THAT(supervisor_->outcome()->reason, HasSubstr("master ended 3 times"));
}

TEST_F(RunSupervisorTest, BadInputOfTheMasterIsNotTriedAgain) {
  Begin();
  Step(Tick{});
  Did();
  Exit("master", kRefused);
  EXPECT_THAT(Did(), Not(Contains(HasSubstr("start"))));
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kBadInput);
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 2);
  EXPECT_EQ(supervisor_->outcome()->reason, "master refused to start:\n    last words");
}

TEST_F(RunSupervisorTest, BadInputThatTheScalerTellsIsItsLastWord) {
  RunToTraining();
  Exit("scaler", kRefused);
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
  Exit("master", kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kBadInput);
  EXPECT_EQ(supervisor_->outcome()->reason, "last words");
}

TEST_F(RunSupervisorTest, SilentMasterIsKilledBeforeAnotherIsStarted) {
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

TEST_F(RunSupervisorTest, SilentScalerIsKilledBeforeAnotherIsStarted) {
  RunToTraining();
  silent_ = true;
  Pass(milliseconds(9'999));
  EXPECT_THAT(Did(), IsEmpty());
  Pass(milliseconds(1));
  EXPECT_THAT(Did(), ElementsAre("kill scaler"));
  Pass(seconds(2));
  EXPECT_THAT(Did(), IsEmpty()) << "killed once";
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start scaler"));
  Pass(seconds(59));
  EXPECT_THAT(Did(), IsEmpty()) << "a starting scaler has more time";
  Pass(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("kill scaler"));
}

TEST_F(RunSupervisorTest, AnswerOfAFormerMasterSaysNothing) {
  RunToTraining();
  const TimePoint before = now_;
  now_ += seconds(1);
  Exit("master", kKilled);
  now_ += seconds(1);
  view_.phase = JobPhase::kFailed;
  Step(MasterAnswered{view_, before});
  EXPECT_THAT(Did(), ElementsAre("start master"));
}

TEST_F(RunSupervisorTest, SuccessWaitsForTheScalerThenOneMoreAnswer) {
  RunToTraining();
  view_.phase = JobPhase::kSucceeded;
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
  now_ += seconds(1);
  ExpectEnd(RunOutcome::State::kSucceeded);
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 0);
}

TEST_F(RunSupervisorTest, ScalerThatKnowsOfTheEndFirstIsNotStartedAgain) {
  RunToTraining();
  Exit("scaler", kClean);
  now_ += milliseconds(1);
  EXPECT_THAT(Did(), IsEmpty());
  view_.phase = JobPhase::kSucceeded;
  Answer();
  now_ += milliseconds(1);
  Answer();
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
}

TEST_F(RunSupervisorTest, ScalerThatWasEndedByHandIsStartedAgain) {
  RunToTraining();
  const TimePoint before = now_;
  now_ += milliseconds(1);
  Exit("scaler", kClean);
  Step(MasterAnswered{view_, before});
  EXPECT_THAT(Did(), IsEmpty()) << "the answer may be older than the job's end";
  Answer();
  EXPECT_THAT(Did(), ElementsAre("start scaler"));
}

TEST_F(RunSupervisorTest, ScalerThatDiesAtTheEndIsStartedAgainToEndTheNodes) {
  RunToTraining();
  view_.phase = JobPhase::kSucceeded;
  Answer();
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start scaler"));
  ExpectEnd(RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, ScalerThatDoesNotEndIsStoppedAfterAWhile) {
  RunToTraining();
  view_.phase = JobPhase::kSucceeded;
  Answer();
  Pass(options_.finish_wait);
  EXPECT_THAT(Did(), ElementsAre("stop scaler"));
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
}

TEST_F(RunSupervisorTest, JobThatWasOverBeforeNeedsNoScaler) {
  Begin();
  Step(Tick{});
  Did();
  view_.phase = JobPhase::kSucceeded;
  Answer();
  now_ += milliseconds(1);
  Answer();
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
  Exit("master", kClean);
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, FailureOfTheJobIsSaidInOneLine) {
  RunToTraining();
  view_.phase = JobPhase::kFailed;
  view_.reason = "worker-0 ended 3 times\n  a log";
  Answer();
  EXPECT_THAT(notes_, Contains("giving up: worker-0 ended 3 times"));
  ExpectEnd(RunOutcome::State::kFailed);
  EXPECT_EQ(supervisor_->outcome()->reason, view_.reason);
}

TEST_F(RunSupervisorTest, DrainKeepsBothAlive) {
  RunToTraining();
  Step(DrainWanted{});
  EXPECT_THAT(Did(), ElementsAre("drain"));
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start scaler"));
  Exit("master", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start master"));
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("drain")) << "asked again: the master may have forgotten";
  view_.phase = JobPhase::kDrained;
  Answer();
  ExpectEnd(RunOutcome::State::kDrained);
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 3);
}

TEST_F(RunSupervisorTest, DrainThatTakesTooLongIsStopped) {
  RunToTraining();
  Step(DrainWanted{});
  Did();
  view_.phase = JobPhase::kDraining;
  // The master ends leases after drain_timeout and may take as long again for its snapshots.
  Pass(2 * options_.drain_timeout);
  EXPECT_THAT(Did(), Not(Contains(HasSubstr("stop "))));
  Pass(options_.drain_slack);
  EXPECT_THAT(Did(), Contains("stop scaler"));
  Exit("scaler", {.signal = 0, .code = 1});
  EXPECT_THAT(Did(), IsSupersetOf({"end nodes", "stop master"}));
}

TEST_F(RunSupervisorTest, SecondSignalKillsEverythingAtOnce) {
  RunToTraining();
  Step(DrainWanted{});
  Did();
  Step(StopWanted{});
  EXPECT_THAT(Did(), IsSupersetOf({"kill master", "kill scaler", "end nodes"}));
  for (const char* node : {"scaler", "master"}) Exit(node, kKilled);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kStopped);
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 3);
}

TEST_F(RunSupervisorTest, CancelledByTheMaster) {
  RunToTraining();
  view_.phase = JobPhase::kCancelled;
  view_.reason = "asked for";
  Answer();
  ExpectEnd(RunOutcome::State::kCancelled);
  EXPECT_EQ(supervisor_->outcome()->reason, "asked for");
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 4);
}

TEST_F(RunSupervisorTest, WhenBothAreKilledAfterTheJobsEndNothingIsWaitedFor) {
  RunToTraining();
  view_.phase = JobPhase::kSucceeded;
  Answer();
  Exit("master", kKilled);
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), Contains("end nodes"));
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, AScalerThatWasStartedForTheEndIsStoppedWhenTheMasterGoes) {
  RunToTraining();
  view_.phase = JobPhase::kSucceeded;
  Answer();
  Exit("scaler", kKilled);
  Exit("master", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start scaler", "stop scaler"));
  Exit("scaler", {.signal = 0, .code = 1});
  EXPECT_THAT(Did(), ElementsAre("end nodes"));
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, AScalerWithoutAMasterIsToldThatTheJobIsOver) {
  RunToTraining();
  view_.phase = JobPhase::kDrained;
  Answer();
  EXPECT_THAT(Did(), IsEmpty()) << "it learns of it from the master";
  Exit("master", kKilled);
  EXPECT_THAT(Did(), ElementsAre("stop scaler"));
  Exit("scaler", {.signal = 0, .code = 1});
  EXPECT_THAT(Did(), ElementsAre("end nodes"));
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kDrained);
}

TEST_F(RunSupervisorTest, SnapshotsThatCannotBeReadAreToldAndHaveTheirOwnExitCode) {
  RunToTraining();
  notes_.clear();
  view_.reason = "ps-0: 2 of its partitions cannot be restored: no file x";
  Answer();
  view_.reason = "ps-0: 1 of its partitions cannot be restored: no file x";
  Answer();
  EXPECT_THAT(notes_, ElementsAre("the job waits: ps-0: 2 of its partitions cannot be restored: "
                                  "no file x"))
      << "once";
  view_.phase = JobPhase::kFailed;
  view_.unrestorable = true;
  Answer();
  ExpectEnd(RunOutcome::State::kUnrestorable);
  EXPECT_EQ(supervisor_->outcome()->reason, view_.reason);
  EXPECT_EQ(ExitCode(RunOutcome::State::kUnrestorable), 7);
  EXPECT_EQ(ToString(RunOutcome::State::kUnrestorable), "failed");
}

TEST_F(RunSupervisorTest, AMachineThatIsShortOfSomethingIsNoCrashLoop) {
  RunToTraining();
  for (const char* node : {"scaler", "master"}) {
    short_ = true;
    Exit(node, kKilled);
    Pass(seconds(300));
    const std::vector<std::string> did = Did();
    EXPECT_GE(std::ranges::count(did, fmt::format("start {}", node)), 10);
    EXPECT_THAT(did, Not(Contains("cancel")));
    EXPECT_THAT(notes_, Contains(HasSubstr("Too many open files); trying again in 30 s")));
    notes_.clear();
    short_ = false;
    Pass(seconds(31));
    EXPECT_THAT(Did(), ElementsAre(fmt::format("start {}", node)));
    Answer();
    Step(ScalerBeat{});
  }
  EXPECT_FALSE(supervisor_->outcome().has_value());
}

TEST_F(RunSupervisorTest, AMasterThatRefusesToAnswerIsThere) {
  RunToTraining();
  const auto refuse = [this](milliseconds time) {
    for (; time > milliseconds(0); time -= seconds(1)) {
      After(seconds(1));
      Step(MasterRefused{now_});
    }
  };
  refuse(3 * options_.master_silence_max);
  EXPECT_THAT(Did(), IsEmpty());
  // What was asked of an earlier life says nothing about this one, and refusals are no answers.
  Exit("master", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start master"));
  const TimePoint before = now_ - seconds(1);
  now_ += milliseconds(100);
  for (milliseconds time{0}; time < options_.master_start_max; time += seconds(1)) {
    After(seconds(1));
    Step(MasterRefused{before});
  }
  EXPECT_THAT(Did(), ElementsAre("kill master"));
}

TEST_F(RunSupervisorTest, ItsOwnPauseIsNobodysSilence) {
  RunToTraining();
  StandStill(seconds(3600));
  EXPECT_THAT(Did(), IsEmpty()) << "nobody could speak meanwhile";
  silent_ = true;
  After(options_.master_silence_max);
  EXPECT_THAT(Did(), IsSupersetOf({"kill master", "kill scaler"})) << "the time after it counts";
}

}  // namespace
}  // namespace muster
