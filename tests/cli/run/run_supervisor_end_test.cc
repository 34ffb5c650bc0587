#include "cli/run/run_supervisor.h"

#include <gmock/gmock.h>

#include "base/words/exit_codes.h"
#include "tests/cli/run/run_supervisor_fixture.h"

/// How a run ends: by itself, by a drain, at once, by a failure of ours.
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

TEST_F(RunSupervisorTest, SuccessWaitsForTheScalerThenOneMoreAnswer) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
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
  view_.state = JobState::kSucceeded;
  Answer();
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master")) << "nothing is left to ask";
}

TEST_F(RunSupervisorTest, ScalerThatDiesAtTheEndIsStartedAgainToEndTheNodes) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start scaler"));
  ExpectEnd(RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, ScalerThatDoesNotEndIsStoppedAfterAWhile) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  Pass(options_.finish_wait);
  EXPECT_THAT(Did(), ElementsAre("ask the scaler to end nodes", "stop scaler"));
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
}

TEST_F(RunSupervisorTest, JobThatWasOverBeforeNeedsNoScaler) {
  Begin();
  Step(Tick{});
  Did();
  view_.state = JobState::kSucceeded;
  Answer();
  now_ += milliseconds(1);
  Answer();
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
  Exit("master", kClean);
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, TheMasterStaysUntilOtherMachinesHaveHeardOfTheEnd) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  view_.end_unheard_by = {"far-a", "far-b"};
  Answer();
  Exit("scaler", kClean);
  Pass(seconds(2));
  EXPECT_THAT(Did(), IsEmpty());
  EXPECT_THAT(notes_, Not(Contains(HasSubstr("far-a"))));
  Pass(seconds(2));
  EXPECT_THAT(
      answers_,
      Contains("the job is over; the master stays up to 30 s until it is known to far-a, far-b"));
  view_.end_unheard_by.clear();
  Pass(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
}

TEST_F(RunSupervisorTest, AMachineThatNeverHearsOfTheEndHasABound) {
  RunToTraining();
  view_.state = JobState::kCancelled;
  view_.end_unheard_by = {"far"};
  Answer();
  Exit("scaler", kClean);
  Pass(options_.joined_wait - seconds(1));
  EXPECT_THAT(Did(), IsEmpty());
  Pass(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
  Exit("master", kClean);
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kCancelled);
}

TEST_F(RunSupervisorTest, FailureOfTheJobIsSaidInOneLine) {
  RunToTraining();
  view_.state = JobState::kFailed;
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
  view_.state = JobState::kDrained;
  Answer();
  ExpectEnd(RunOutcome::State::kDrained);
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 3);
}

TEST_F(RunSupervisorTest, DrainThatTakesTooLongIsStopped) {
  RunToTraining();
  Step(DrainWanted{});
  Did();
  view_.state = JobState::kDraining;
  // The master ends leases after drain_timeout and may take as long again for its snapshots.
  Pass(2 * options_.drain_timeout);
  EXPECT_THAT(Did(), Not(Contains(HasSubstr("stop "))));
  Pass(options_.drain_slack);
  EXPECT_THAT(Did(), IsSupersetOf({"ask the scaler to end nodes", "stop scaler"}));
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
  view_.state = JobState::kCancelled;
  view_.reason = "asked for";
  Answer();
  ExpectEnd(RunOutcome::State::kCancelled);
  EXPECT_EQ(supervisor_->outcome()->reason, "asked for");
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 4);
}

TEST_F(RunSupervisorTest, WhenBothAreKilledAfterTheJobsEndNothingIsWaitedFor) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  Exit("master", kKilled);
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), Contains("end nodes"));
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, AScalerThatWasStartedForTheEndIsStoppedWhenTheMasterGoes) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  Exit("scaler", kKilled);
  Exit("master", kKilled);
  EXPECT_THAT(Did(), ElementsAre("start scaler", "ask the scaler to end nodes", "stop scaler"));
  Exit("scaler", {.signal = 0, .code = 1});
  EXPECT_THAT(Did(), ElementsAre("end nodes"));
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, AScalerWithoutAMasterIsToldThatTheJobIsOver) {
  RunToTraining();
  view_.state = JobState::kDrained;
  Answer();
  EXPECT_THAT(Did(), IsEmpty()) << "it learns of it from the master";
  Exit("master", kKilled);
  EXPECT_THAT(Did(), IsSupersetOf({"ask the scaler to end nodes", "stop scaler"}));
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
  view_.state = JobState::kFailed;
  view_.unrestorable = true;
  Answer();
  ExpectEnd(RunOutcome::State::kUnrestorable);
  EXPECT_EQ(supervisor_->outcome()->reason, view_.reason);
  EXPECT_EQ(ExitCode(RunOutcome::State::kUnrestorable), 7);
  EXPECT_EQ(ToString(RunOutcome::State::kUnrestorable), "failed");
}

TEST_F(RunSupervisorTest, AMasterThatLostTheJobEndsTheRunAndNoNodeOfTheJob) {
  constexpr ExitStatus kTakenOver{.signal = 0, .code = kTakenOverExit};
  RunToTraining();
  Exit("master", kTakenOver);
  EXPECT_THAT(Did(), ElementsAre("kill scaler")) << "at SIGTERM it would end the nodes";
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), IsEmpty());
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kTakenOver);
  EXPECT_EQ(supervisor_->outcome()->reason, "the master ended:\n    last words");
  EXPECT_EQ(ExitCode(RunOutcome::State::kTakenOver), 8);
  EXPECT_EQ(ToString(RunOutcome::State::kTakenOver), "taken over");

  Begin();
  Step(Tick{});
  Did();
  Exit("master", kTakenOver);
  EXPECT_THAT(Did(), IsEmpty()) << "it is not started again";
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kTakenOver);
}

TEST_F(RunSupervisorTest, AMasterThatCannotBeToldOfTheCrashLoopIsAskedAgainButNotForEver) {
  for (const bool dies : {false, true}) {
    RunToTraining();
    for (int i = 0; i < 2; ++i) {
      Exit("scaler", kKilled);
      After(seconds(2));
    }
    Did();
    Exit("scaler", kKilled);
    EXPECT_THAT(Did(), ElementsAre("cancel"));
    After(seconds(2));
    EXPECT_THAT(Did(), ElementsAre("cancel", "cancel")) << "once a second";
    if (dies) {
      Exit("master", kKilled);
      EXPECT_THAT(Did(), ElementsAre("end nodes")) << "no process is left to ask";
    } else {
      After(options_.cancel_wait - seconds(2));
      EXPECT_THAT(Did(), ElementsAre("cancel", "cancel", "end nodes", "stop master"));
      Exit("master", kClean);
    }
    ASSERT_TRUE(supervisor_->outcome().has_value());
    EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kFailed);
    EXPECT_THAT(supervisor_->outcome()->reason, HasSubstr("scaler ended 3 times"));
    pids_.clear();
  }
}

TEST_F(RunSupervisorTest, AJobThatHasEndedStaysAsItEndedWhateverTheScalerDoes) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  for (int i = 0; i < 3; ++i) {
    Exit("scaler", kKilled);
    Pass(seconds(2));
  }
  EXPECT_THAT(Did(), Not(Contains("cancel")));
  Exit("master", kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, TheLastAnswerIsOneThatWasAskedForAfterTheScalersEnd) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  const TimePoint before = now_;
  now_ += milliseconds(1);
  Exit("scaler", kClean);
  Step(MasterAnswered{view_, before});
  EXPECT_THAT(Did(), IsEmpty()) << "it may not know of every exit";
  Answer();
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
}

TEST_F(RunSupervisorTest, TheLastAnswerIsNotWaitedForForEver) {
  for (const bool dies : {false, true}) {
    RunToTraining();
    view_.state = JobState::kSucceeded;
    Answer();
    now_ += milliseconds(1);
    Exit("scaler", kClean);
    EXPECT_THAT(Did(), IsEmpty());
    if (dies) {
      Exit("master", kKilled);
      EXPECT_THAT(Did(), ElementsAre("end nodes")) << "not started again";
    } else {
      After(milliseconds(2'999));
      EXPECT_THAT(Did(), IsEmpty());
      After(milliseconds(1));
      EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
      Exit("master", kClean);
    }
    ASSERT_TRUE(supervisor_->outcome().has_value());
    EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
    view_.state = JobState::kRunning;
    pids_.clear();
  }
}

TEST_F(RunSupervisorTest, AScalerThatWasEndedByHandDuringADrainIsStartedAgain) {
  RunToTraining();
  Step(DrainWanted{});
  view_.state = JobState::kDraining;
  now_ += milliseconds(1);
  Exit("scaler", kClean);
  Did();
  Answer();
  EXPECT_THAT(Did(), ElementsAre("start scaler"));
}

TEST_F(RunSupervisorTest, ADrainThatSomebodyElseAskedForHasADeadlineToo) {
  RunToTraining();
  view_.state = JobState::kDraining;
  Answer();
  EXPECT_THAT(Did(), IsEmpty());
  Pass(seconds(3));
  EXPECT_THAT(Did(), ElementsAre("drain", "drain", "drain")) << "once a second";
  Step(DrainWanted{});
  EXPECT_THAT(Did(), IsEmpty()) << "it drains already";
  Pass(2 * options_.drain_timeout + options_.drain_slack - seconds(4));
  EXPECT_THAT(Did(), Not(Contains("stop scaler")));
  Pass(seconds(1));
  EXPECT_THAT(Did(), Contains("stop scaler"));
  for (const char* node : {"scaler", "master"}) Exit(node, kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kStopped);
  EXPECT_THAT(supervisor_->outcome()->reason,
              HasSubstr("did not finish within 70 s (spec.drainTimeout is 30 s)"));
}

TEST_F(RunSupervisorTest, ADrainBeforeTheMasterAnsweredIsAStop) {
  Begin();
  Step(Tick{});
  Did();
  Step(DrainWanted{});
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
  Exit("master", kKilled);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kStopped);
  EXPECT_EQ(supervisor_->outcome()->reason, "stopped before the master answered");
}

TEST_F(RunSupervisorTest, AStopAfterTheJobsEndDoesNotChangeHowItEnded) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  Step(StopWanted{});
  EXPECT_THAT(Did(), IsSupersetOf({"kill scaler", "kill master", "end nodes"}));
  Step(StopWanted{});
  EXPECT_THAT(Did(), ElementsAre("kill scaler", "kill master")) << "nodes once";
  for (const char* node : {"scaler", "master"}) Exit(node, kKilled);
  Did();
  Step(StopWanted{});
  EXPECT_THAT(Did(), IsEmpty()) << "nothing is left";
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, WhoMustLeaveStopsItsOwnProcessesAndNoOthers) {
  RunToTraining();
  Step(LeaveWanted{});
  EXPECT_THAT(Did(), ElementsAre("stop scaler"));
  Step(LeaveWanted{});
  EXPECT_THAT(Did(), IsEmpty());
  Exit("scaler", ExitStatus{.code = 1});
  EXPECT_THAT(Did(), ElementsAre("stop master")) << "nodes live on, and nothing is started again";
  Exit("master", kClean);
  EXPECT_THAT(Did(), IsEmpty());
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kLeft);
  EXPECT_EQ(ToString(supervisor_->outcome()->state), "left");
  EXPECT_EQ(ExitCode(supervisor_->outcome()->state), 143);
}

TEST_F(RunSupervisorTest, ACrashLoopOfTheMasterIsNoEndOfAJobThatContinuesElsewhere) {
  options_.continues_elsewhere = true;
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    After(seconds(2));
    Did();
    Exit("master", ExitStatus{.code = 1});
  }
  EXPECT_THAT(Did(), ElementsAre("stop scaler"));
  Exit("scaler", kClean);
  EXPECT_THAT(Did(), IsEmpty()) << "nodes live on";
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kGivenUp);
  EXPECT_THAT(supervisor_->outcome()->reason, HasSubstr("master ended 3 times"));
  EXPECT_EQ(ToString(RunOutcome::State::kGivenUp), "given up");
  EXPECT_EQ(ExitCode(RunOutcome::State::kGivenUp), 5);
}

TEST_F(RunSupervisorTest, AFailureThatTheMasterHasRecordedIsTheEndEverywhere) {
  options_.continues_elsewhere = true;
  RunToTraining();
  for (int i = 0; i < 3; ++i) {
    Pass(seconds(2));
    Exit("scaler", kKilled);
  }
  EXPECT_THAT(Did(), Contains("cancel"));
  view_.state = JobState::kFailed;
  view_.reason = "scaler ended 3 times";
  Answer();
  now_ += milliseconds(1);
  Answer();
  EXPECT_THAT(Did(), Contains("end nodes"));
  Exit("master", kClean);
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kFailed);
}

TEST_F(RunSupervisorTest, WhoLeavesAtTheJobsEndLeavesItsEndToTheNextOne) {
  RunToTraining();
  view_.state = JobState::kSucceeded;
  Answer();
  Step(LeaveWanted{});
  EXPECT_THAT(Did(), ElementsAre("stop scaler"));
  for (const char* node : {"scaler", "master"}) Exit(node, kClean);
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kLeft);
}

TEST_F(RunSupervisorTest, ARunThatIsBeingStoppedIsNotLeft) {
  RunToTraining();
  Step(DrainWanted{});
  Pass(2 * options_.drain_timeout + options_.drain_slack);
  Did();
  Step(LeaveWanted{});
  Exit("scaler", kClean);
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
  Exit("master", kClean);
  EXPECT_EQ(supervisor_->outcome()->state, RunOutcome::State::kStopped);
}

}  // namespace
}  // namespace muster
