#include "base/backoff.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr BackoffLimits kLimits{.first = milliseconds(100), .longest = milliseconds(700)};

TEST(BackoffTest, APauseDoublesUpToTheLongest) {
  uint32_t failures = 0;
  for (const int expected : {100, 100, 200, 400, 700, 700}) {
    EXPECT_EQ(PauseAfter(failures, kLimits), milliseconds(expected)) << failures;
    ++failures;
  }
}

TEST(BackoffTest, NoNumberOfFailuresOverflows) {
  constexpr uint32_t kMany = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(PauseAfter(kMany, kLimits), milliseconds(700));
  EXPECT_EQ(PauseAfter(kMany, {.first = nanoseconds(1), .longest = nanoseconds::max()}),
            nanoseconds(int64_t{1} << 61));
  EXPECT_EQ(PauseAfter(kMany, {.first = hours(1), .longest = nanoseconds::max()}),
            nanoseconds::max());
}

TEST(BackoffTest, WithoutALengthThereIsNoPause) {
  EXPECT_EQ(PauseAfter(9, {.first = {}, .longest = hours(1)}), nanoseconds(0));
  EXPECT_EQ(PauseAfter(9, {.first = hours(1), .longest = {}}), nanoseconds(0));
  Rng rng(1);
  EXPECT_EQ(Spread(nanoseconds(0), &rng), nanoseconds(0));
}

TEST(BackoffTest, ASpreadPauseIsBetweenHalfAndAll) {
  Rng rng(7);
  nanoseconds least = milliseconds(100), most{0};
  for (int i = 0; i < 1'000; ++i) {
    const nanoseconds pause = Spread(milliseconds(100), &rng);
    least = std::min(least, pause);
    most = std::max(most, pause);
  }
  EXPECT_GE(least, milliseconds(50));
  EXPECT_LT(least, milliseconds(52));
  EXPECT_GT(most, milliseconds(98));
  EXPECT_LT(most, milliseconds(100));
}

TEST(BackoffTest, ASuccessBeginsAgain) {
  Rng rng(3);
  Backoff backoff(kLimits);
  for (int round = 0; round < 2; ++round) {
    for (const int whole : {100, 200, 400, 700, 700}) {
      const nanoseconds pause = backoff.Failed(&rng);
      EXPECT_GE(pause, milliseconds(whole) / 2);
      EXPECT_LT(pause, milliseconds(whole));
    }
    backoff.Succeeded();
  }
}

}  // namespace
}  // namespace muster
