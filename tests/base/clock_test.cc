#include "base/clock.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ClockTest, MonotonicTimeNeverGoesBackAndSleepTakesItsTime) {
  const SystemClock clock;
  const TimePoint before = clock.Now();
  SleepFor(std::chrono::milliseconds(2));
  EXPECT_GE(clock.Now() - before, std::chrono::milliseconds(2));
}

TEST(ClockTest, WallTimeIsSinceTheEpoch) {
  // 2020-01-01: a clock that counts from anything but 1970 is far off.
  EXPECT_GT(SystemClock().Wall(), std::chrono::seconds(1'577'836'800));
}

}  // namespace
}  // namespace muster
