#include "ps/net/log_throttle.h"

#include <gtest/gtest.h>

namespace muster::ps {
namespace {

using std::chrono::milliseconds;

TEST(LogThrottleTest, OneLineAnIntervalAndTheOthersAreCounted) {
  LogThrottle throttle(milliseconds(100));
  const TimePoint start(std::chrono::seconds(50));
  EXPECT_EQ(throttle.Admit(start), 0u);
  EXPECT_EQ(throttle.Admit(start), std::nullopt);
  EXPECT_EQ(throttle.Admit(start + milliseconds(99)), std::nullopt);
  EXPECT_EQ(throttle.Admit(start + milliseconds(100)), 2u);
  EXPECT_EQ(throttle.Admit(start + milliseconds(150)), std::nullopt);
  EXPECT_EQ(throttle.Admit(start + milliseconds(900)), 1u);
}

}  // namespace
}  // namespace muster::ps
