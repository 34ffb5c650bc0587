#include "worker_sdk/core/shortage_backoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster::sdk {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ShortageBackoffTest, PausesGrowToTheirBoundAndBeginAnewAfterASuccess) {
  ShortageBackoff backoff;
  TimePoint now{seconds(100)};
  milliseconds expected = ShortageBackoff::kPauseMin;
  for (int i = 0; i < 100; ++i) {
    const ShortageBackoff::Step step = backoff.Failed(now);
    EXPECT_EQ(step.pause, expected) << i;
    now += step.pause;
    expected = std::min(expected * 2, ShortageBackoff::kPauseMax);
  }
  backoff.Succeeded();
  EXPECT_EQ(backoff.Failed(now).pause, ShortageBackoff::kPauseMin);
}

TEST(ShortageBackoffTest, TheFirstFailureIsSaidAndLaterOnesAtGrowingDistances) {
  ShortageBackoff backoff;
  const TimePoint begin{seconds(100)};
  std::vector<long> said;
  uint64_t unsaid = 0;
  for (int tenth = 0; tenth < 3'000; ++tenth) {  // five minutes
    const TimePoint now = begin + milliseconds(100) * tenth;
    backoff.Succeeded();  // now and then one succeeds: that makes no more lines
    const ShortageBackoff::Step step = backoff.Failed(now);
    if (!step.say) continue;
    said.push_back((now - begin) / seconds(1));
    unsaid += step.unsaid + 1;
  }
  EXPECT_EQ(said, (std::vector<long>{0, 2, 6, 14, 30, 62, 122, 182, 242}));
  EXPECT_EQ(unsaid, 2'421u) << "every failure up to the last line was counted in one";
  // Long after the trouble, new trouble is said at once.
  const TimePoint later = begin + seconds(400);
  EXPECT_TRUE(backoff.Failed(later).say);
  EXPECT_FALSE(backoff.Failed(later + seconds(1)).say);
  EXPECT_TRUE(backoff.Failed(later + seconds(2)).say);
}

}  // namespace
}  // namespace muster::sdk
