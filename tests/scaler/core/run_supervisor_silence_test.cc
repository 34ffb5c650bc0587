#include <gmock/gmock.h>

#include "scaler/core/run_supervisor.h"
#include "tests/scaler/core/run_supervisor_fixture.h"

/// Who is heard of, and who is taken for dead.
namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

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
