#include "cli/run/run_supervisor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/cli/run/run_supervisor_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(RunSupervisorTest, AProcessThatContinuesTheRunCountsStartsOn) {
  options_.master_starts_before = 2;
  options_.scaler_starts_before = 5;
  RunToTraining();
  EXPECT_EQ(supervisor_->restarts(NodeRole::kMaster), 2u);
  EXPECT_EQ(supervisor_->restarts(NodeRole::kScaler), 5u);
  Exit("scaler", kKilled);
  Pass(std::chrono::seconds(1));
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[0].start, StartNumber(6)) << "of the exit";
  EXPECT_EQ(told_[1].start, StartNumber(7));
}

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

TEST_F(RunSupervisorTest, RestartsAtOnceThenWithBackOffAndTellsTheMaster) {
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
  view_.state = JobState::kFailed;
  Answer();
  now_ += milliseconds(1);
  Answer();
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"))
      << "there is no scaler to end the nodes";
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
  EXPECT_EQ(supervisor_->outcome()->reason, "the master refused to start:\n    last words");
}

TEST_F(RunSupervisorTest, AMasterThatHasAnsweredIsStartedAgainWhateverItEndsWith) {
  RunToTraining();
  Exit("master", kRefused);
  EXPECT_THAT(Did(), ElementsAre("start master"));
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
    Progress();
    // The next shortage is another: it is tried again at once.
    short_ = true;
    Exit(node, kKilled);
    EXPECT_EQ(std::ranges::count(Did(), fmt::format("start {}", node)), 2);
    short_ = false;
    Pass(seconds(2));
    EXPECT_THAT(Did(), ElementsAre(fmt::format("start {}", node)));
    Answer();
    Step(ScalerBeat{});
  }
  EXPECT_FALSE(supervisor_->outcome().has_value());
}

TEST_F(RunSupervisorTest, ProgressThatOthersMadeBeforeItsStartExcusesNobody) {
  RunToTraining();
  Progress();
  for (int i = 0; i < 2; ++i) {
    Exit("scaler", kKilled);
    Pass(seconds(2));
    Step(ScalerBeat{});
  }
  EXPECT_THAT(Did(), Not(Contains("cancel")));
  Exit("scaler", kKilled);
  EXPECT_THAT(Did(), Contains("cancel"));
}

TEST_F(RunSupervisorTest, StartsBeyondTheFirstAreRestarts) {
  Begin();
  EXPECT_EQ(supervisor_->restarts(NodeRole::kMaster), 0u);
  Step(Tick{});
  EXPECT_EQ(supervisor_->restarts(NodeRole::kMaster), 0u);
  Exit("master", kKilled);
  EXPECT_EQ(supervisor_->restarts(NodeRole::kMaster), 1u);
  EXPECT_EQ(supervisor_->restarts(NodeRole::kScaler), 0u);
}

TEST_F(RunSupervisorTest, WhatTheUserMustKnowIsToldEvenWithoutProgress) {
  RunToTraining();
  view_.reason = "no file x";
  Answer();
  EXPECT_THAT(answers_, ElementsAre("the job waits: no file x"));
  view_.reason = "";
  Answer();
  view_.reason = "no file y";
  Answer();
  Step(DrainWanted{});
  EXPECT_THAT(answers_, ElementsAre("the job waits: no file x", "the job waits: no file y",
                                    HasSubstr("draining: no new shards")));
  notes_.clear();
  view_.state = JobState::kSucceeded;
  view_.reason = "all is trained";
  Answer();
  EXPECT_THAT(notes_, IsEmpty()) << "the summary says how it ended";
}

TEST_F(RunSupervisorTest, AMasterThatEndsBeforeItAnswersIsToldEvenWithoutProgress) {
  Begin();
  Step(Tick{});
  Exit("master", {.signal = 0, .code = 1});
  EXPECT_THAT(answers_, ElementsAre(AllOf(HasSubstr("master"), HasSubstr("last words"))));
  After(seconds(1));
  Answer();
  answers_.clear();
  Exit("master", kKilled);
  EXPECT_THAT(answers_, IsEmpty()) << "a restart in a run that works is only progress";
}

}  // namespace
}  // namespace muster
