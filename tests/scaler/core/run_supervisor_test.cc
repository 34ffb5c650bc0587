#include "scaler/core/run_supervisor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/scaler/core/run_supervisor_fixture.h"

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

}  // namespace
}  // namespace muster
