#include "worker_sdk/core/lease_pace.h"

#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A loop that takes a shard every `shard`, and exchanges that take `trip` and follow each other
/// after `spacing`. It takes no more in an exchange's time than it was given by the one before.
uint32_t GoalAfter(LeasePace* pace, TimePoint* now, microseconds shard, milliseconds trip,
                   milliseconds duration, milliseconds spacing = milliseconds(2)) {
  const TimePoint end = *now + duration;
  double work = 0;
  while (*now < end) {
    pace->Exchanging(*now);
    const uint32_t held = std::max(pace->goal(), 1u);
    work += static_cast<double>((trip + spacing) / microseconds(1)) /
            static_cast<double>(shard.count());
    for (uint32_t i = 0; i < held && work >= 1; ++i, --work) pace->Took();
    work = std::min(work, 1.0);
    *now += trip;
    pace->Answered(*now);
    *now += spacing;
  }
  return pace->goal();
}

TEST(LeasePaceTest, LongShardsAreHeldAsTheJobSays) {
  LeasePace pace(3);
  TimePoint now{std::chrono::seconds(100)};
  EXPECT_EQ(pace.goal(), 3u);
  EXPECT_EQ(GoalAfter(&pace, &now, milliseconds(700), milliseconds(1), milliseconds(8'000)), 3u);
}

TEST(LeasePaceTest, TheLoopsHaveWorkWhileTheMasterRestarts) {
  for (const milliseconds shard : {milliseconds(10), milliseconds(40), milliseconds(300)}) {
    LeasePace pace(2);
    TimePoint now{std::chrono::seconds(100)};
    const uint32_t goal = GoalAfter(&pace, &now, shard, milliseconds(1), milliseconds(9'000));
    const auto expected = static_cast<double>(LeasePace::kRestart / shard);
    EXPECT_NEAR(goal, expected, 0.1 * expected + 1) << shard.count() << " ms";
  }
  LeasePace pace(2);
  TimePoint now{std::chrono::seconds(100)};
  EXPECT_EQ(GoalAfter(&pace, &now, milliseconds(1), milliseconds(1), milliseconds(5'000)),
            LeasePace::kRestartShardsMax)
      << "every exchange lists them";
}

TEST(LeasePaceTest, VeryShortShardsAreHeldForATenthOfASecond) {
  for (const milliseconds trip : {milliseconds(1), milliseconds(30), milliseconds(100)}) {
    LeasePace pace(2);
    TimePoint now{std::chrono::seconds(100)};
    const uint32_t goal = GoalAfter(&pace, &now, microseconds(300), trip, milliseconds(5'000));
    const auto expected = static_cast<double>((LeasePace::kAhead + 2 * trip) / microseconds(300));
    EXPECT_NEAR(goal, expected, 0.15 * expected) << trip.count() << " ms";
  }
}

TEST(LeasePaceTest, TheGoalRisesAtOnceAndFallsWithinTwoSpans) {
  LeasePace pace(2);
  TimePoint now{std::chrono::seconds(100)};
  EXPECT_GT(GoalAfter(&pace, &now, microseconds(100), milliseconds(1), milliseconds(200)), 500u);
  const milliseconds two_spans = 2 * LeasePace::kRestart + milliseconds(10);
  EXPECT_EQ(GoalAfter(&pace, &now, milliseconds(900), milliseconds(1), two_spans), 2u);
}

TEST(LeasePaceTest, TheGoalHasABound) {
  LeasePace pace(1);
  TimePoint now{std::chrono::seconds(100)};
  EXPECT_EQ(GoalAfter(&pace, &now, microseconds(1), milliseconds(1), milliseconds(2'000)),
            LeasePace::kShardsMax);
}

TEST(LeasePaceTest, AnAnswerThatNeverCameRaisesNoGoal) {
  LeasePace pace(2);
  TimePoint now{std::chrono::seconds(100)};
  pace.Exchanging(now);
  now += std::chrono::hours(1);
  pace.Exchanging(now);
  pace.Took();
  pace.Answered(now + std::chrono::hours(1));
  now += std::chrono::hours(2);
  pace.Exchanging(now);
  EXPECT_EQ(pace.goal(), 2u);
}

TEST(LeasePaceTest, WhoMayHoldNoneHoldsNone) {
  LeasePace pace(0);
  TimePoint now{std::chrono::seconds(100)};
  EXPECT_EQ(GoalAfter(&pace, &now, microseconds(10), milliseconds(1), milliseconds(500)), 0u);
}

}  // namespace
}  // namespace muster::sdk
