#include <gmock/gmock.h>

#include "cli/run/run_supervisor.h"
#include "tests/cli/run/run_supervisor_fixture.h"

/// Which processes are heard, and which count as dead.
namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

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
  view_.state = JobState::kFailed;
  Step(MasterAnswered{view_, before});
  EXPECT_THAT(Did(), ElementsAre("start master"));
  Step(DrainWanted{});
  EXPECT_THAT(Did(), ElementsAre("drain")) << "the job continues";
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
  // An answer to a question to an earlier process says nothing about this one, and refusals are no
  // answers.
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

TEST_F(RunSupervisorTest, AMasterThatReadsItsDataLives) {
  Begin();
  Step(Tick{});
  Did();
  for (int minute = 0; minute < 60; ++minute) {
    After(seconds(60));
    Step(MasterBeat{});
  }
  EXPECT_THAT(Did(), IsEmpty());
  After(options_.master_start_max);
  EXPECT_THAT(Did(), ElementsAre("kill master")) << "it reads no longer";
  EXPECT_THAT(notes_, Contains(HasSubstr("it did not answer, and read none of its data, for 300")));
}

TEST_F(RunSupervisorTest, AMasterThatHasAnsweredMustGoOnToAnswer) {
  RunToTraining();
  After(options_.master_silence_max);
  EXPECT_THAT(Did(), ElementsAre("kill master"));
}

TEST_F(RunSupervisorTest, TheReasonOfACrashLoopIsThatOfTheKills) {
  Begin();
  Step(Tick{});
  for (uint32_t i = 0; i < options_.restarts.crash_loop_exits; ++i) {
    After(options_.master_start_max);
    Exit("master", kKilled);
    After(seconds(31));
  }
  ASSERT_TRUE(supervisor_->outcome().has_value());
  EXPECT_THAT(supervisor_->outcome()->reason,
              AllOf(HasSubstr("it was killed, because it did not answer"),
                    Not(HasSubstr("memory runs out"))));
}

TEST_F(RunSupervisorTest, ItsOwnPauseIsNobodysSilence) {
  RunToTraining();
  StandStill(seconds(3600));
  EXPECT_THAT(Did(), IsEmpty()) << "no process could report meanwhile";
  silent_ = true;
  After(options_.master_silence_max);
  EXPECT_THAT(Did(), IsSupersetOf({"kill master", "kill scaler"})) << "the time after it counts";
}

TEST_F(RunSupervisorTest, ItsOwnPauseIsNobodysSilenceLaterEither) {
  RunToTraining();
  Pass(seconds(60));
  StandStill(seconds(3600));
  EXPECT_THAT(Did(), IsEmpty());
  // The first two seconds count as for any step that comes late.
  After(options_.master_silence_max - seconds(3));
  EXPECT_THAT(Did(), IsEmpty());
  After(seconds(1));
  EXPECT_THAT(Did(), ElementsAre("kill master"));
}

TEST_F(RunSupervisorTest, AStepThatComesALittleLateIsNoPause) {
  RunToTraining();
  silent_ = true;
  for (int i = 0; i < 5; ++i) StandStill(seconds(2));
  EXPECT_THAT(Did(), ElementsAre("kill master", "kill scaler"));
}

TEST_F(RunSupervisorTest, ItsOwnPauseTakesNoTimeFromADrain) {
  RunToTraining();
  view_.state = JobState::kDraining;
  Answer();
  StandStill(seconds(3600));
  Answer();
  Pass(2 * options_.drain_timeout + options_.drain_slack - seconds(3));
  EXPECT_THAT(Did(), Not(Contains("stop scaler")));
  Pass(seconds(1));
  EXPECT_THAT(Did(), Contains("stop scaler"));
}

TEST_F(RunSupervisorTest, WhatTheMasterWasAskedBeforeAPauseCounts) {
  RunToTraining();
  const TimePoint asked_at = now_;
  StandStill(seconds(3600));
  view_.state = JobState::kSucceeded;
  Step(MasterAnswered{view_, asked_at});
  ExpectEnd(RunOutcome::State::kSucceeded);
}

TEST_F(RunSupervisorTest, WhoIsSilentAgainInItsNextLifeIsKilledAgain) {
  RunToTraining();
  for (int life = 0; life < 2; ++life) {
    After(options_.master_silence_max);
    EXPECT_THAT(Did(), ElementsAre("kill master"));
    Exit("master", kKilled);
    After(seconds(1));
    EXPECT_THAT(Did(), ElementsAre("start master"));
    Answer();
  }
}

TEST_F(RunSupervisorTest, WhileEverythingStopsNobodyIsKilledForItsSilence) {
  RunToTraining();
  Step(DrainWanted{});
  view_.state = JobState::kDraining;
  Pass(2 * options_.drain_timeout + options_.drain_slack);
  EXPECT_THAT(Did(), Contains("stop scaler"));
  silent_ = true;
  After(seconds(60));
  EXPECT_THAT(Did(), IsEmpty()) << "the scaler ends the nodes, and the master hears of it";
  Exit("scaler", kClean);
  After(seconds(60));
  EXPECT_THAT(Did(), ElementsAre("end nodes", "stop master"));
}

}  // namespace
}  // namespace muster
