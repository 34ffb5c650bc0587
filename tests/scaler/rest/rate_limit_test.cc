#include "scaler/rest/rate_limit.h"

#include <gtest/gtest.h>

namespace muster::scaler::rest {
namespace {

using std::chrono::milliseconds;

TEST(RateLimitTest, ABurstThenTheRate) {
  const TimePoint begin{std::chrono::seconds(50)};
  RateLimiter limiter({.per_second = 10, .burst = 3}, begin);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(limiter.Take(begin));
  EXPECT_EQ(limiter.Take(begin), milliseconds(100));
  EXPECT_EQ(limiter.Take(begin + milliseconds(50)), milliseconds(50));
  EXPECT_FALSE(limiter.Take(begin + milliseconds(100)));
  EXPECT_TRUE(limiter.Take(begin + milliseconds(100)));
  // A long rest fills it up to the burst, no further; time that goes back changes nothing.
  const TimePoint later = begin + std::chrono::hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(limiter.Take(later));
  EXPECT_TRUE(limiter.Take(later));
  EXPECT_TRUE(limiter.Take(begin));
}

}  // namespace
}  // namespace muster::scaler::rest
