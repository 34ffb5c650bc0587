#include "master/core/run_clock.h"

#include <gtest/gtest.h>

#include "tests/master/core/core_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WallTime kBegin{seconds(1'000)};

MetaRecord Saved(const RunClock& clock) {
  MetaRecord meta;
  clock.Save(&meta);
  return meta;
}

TEST(RunClockTest, ARestartOfTheMasterDoesNotBeginItAnew) {
  RunClock clock;
  clock.BeginRun(std::nullopt, std::nullopt, kBegin);
  EXPECT_EQ(clock.Running(kBegin + seconds(60)), seconds(60));
  RunClock next;
  next.Resume(Saved(clock), kBegin + seconds(90));
  EXPECT_EQ(next.Running(kBegin + seconds(100)), seconds(100));
  EXPECT_EQ(next.Running(kBegin - seconds(5)), seconds(0)) << "the wall clock was set back";
}

TEST(RunClockTest, RunsAddUpWithoutTheTimeBetweenThem) {
  RunClock clock;
  clock.BeginRun(std::nullopt, std::nullopt, kBegin);
  RunClock second;
  second.BeginRun(Saved(clock), kBegin + seconds(60), kBegin + seconds(5'000));
  EXPECT_EQ(second.Running(kBegin + seconds(5'010)), seconds(70));
  RunClock third;
  third.BeginRun(Saved(second), kBegin + seconds(5'030), kBegin + seconds(9'000));
  EXPECT_EQ(third.Running(kBegin + seconds(9'001)), seconds(91));
}

TEST(RunClockTest, ARunThatIsKilledLastsUntilItWasLastSeen) {
  RunClock clock;
  clock.BeginRun(std::nullopt, std::nullopt, kBegin);
  clock.See(kBegin + RunClock::kSeenInterval - milliseconds(1));
  EXPECT_EQ(clock.seen(), kBegin) << "the journal is not written that often";
  clock.See(kBegin + seconds(60));
  clock.See(kBegin + seconds(50));
  EXPECT_EQ(clock.seen(), kBegin + seconds(60));
  RunClock second;
  second.BeginRun(Saved(clock), kBegin + seconds(1), kBegin + seconds(5'000));
  EXPECT_EQ(second.Running(kBegin + seconds(5'010)), seconds(70));
}

TEST(RunClockTest, AJournalThatDoesNotSayWhenItsRunBegan) {
  RunClock clock;
  clock.Resume(MetaRecord{}, kBegin);
  EXPECT_EQ(clock.Running(kBegin + seconds(2)), seconds(2));
  clock.BeginRun(MetaRecord{}, kBegin - seconds(9), kBegin);
  EXPECT_EQ(clock.Running(kBegin + milliseconds(1'500)), milliseconds(1'500));
}

class RunTimeTest : public ::testing::Test, protected testing::CoreFixture {};

TEST_F(RunTimeTest, TheTimeOfAJobThatWasKilledIsKnown) {
  core = std::make_unique<MasterCore>(options, DurableState{}, StepTime{now, WallTime(seconds(1))});
  Sync();
  core->Tick({now, WallTime(seconds(61))});
  Sync();
  const MasterCore killed(options, journal.TakeState(), MasterCore::AsFound{});
  EXPECT_EQ(killed.RunningFor({}), seconds(60));
}

}  // namespace
}  // namespace muster
