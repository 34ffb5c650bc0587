#include "worker_sdk/member_core/call_times.h"

#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kHeartbeat{100};
const TimePoint kStart{std::chrono::seconds(10)};

TEST(CallTimesTest, AMemberIsQuietForTwiceAsLongAsAStep) {
  CallTimes times;
  EXPECT_FALSE(times.IsQuiet(true, kStart)) << "nothing was heard yet";
  times.OnAnswer(StepNumber(1), kHeartbeat, kStart);
  times.OnAnswer(StepNumber(2), kHeartbeat, kStart + milliseconds(30));
  EXPECT_TRUE(times.IsQuiet(true, kStart + milliseconds(89)));
  EXPECT_FALSE(times.IsQuiet(true, kStart + milliseconds(90)));
  EXPECT_EQ(times.Next(true), kStart + milliseconds(90));
  // An answer without a step says nothing of how long steps are.
  times.OnAnswer(StepNumber(2), kHeartbeat, kStart + milliseconds(40));
  EXPECT_EQ(times.Next(true), kStart + milliseconds(100));
}

TEST(CallTimesTest, AQuietTimeHasLimits) {
  CallTimes times;
  times.OnAnswer(StepNumber(1), kHeartbeat, kStart);
  times.OnAnswer(StepNumber(2), kHeartbeat, kStart + milliseconds(1));
  EXPECT_EQ(times.Next(true), kStart + milliseconds(1) + CallTimes::kQuietMin);
  const TimePoint later = kStart + std::chrono::seconds(5);
  times.OnAnswer(StepNumber(3), kHeartbeat, later);
  EXPECT_EQ(times.Next(true), later + kHeartbeat);
  times.OnAnswer(StepNumber(3), std::chrono::seconds(1), later);
  EXPECT_EQ(times.Next(true), later + CallTimes::kQuietMax);
}

TEST(CallTimesTest, AMemberThatWaitsForTheOthersSoonCalls) {
  CallTimes times;
  times.OnAnswer(StepNumber(1), kHeartbeat, kStart);
  EXPECT_EQ(times.Next(true), kStart + kHeartbeat);
  EXPECT_EQ(times.Next(false), kStart + CallTimes::kQuietMin) << "it has nothing to compute";
  times.OnComputed(kStart + milliseconds(50));
  EXPECT_TRUE(times.IsQuiet(false, kStart + milliseconds(59)));
  EXPECT_FALSE(times.IsQuiet(false, kStart + milliseconds(60)));
}

TEST(CallTimesTest, AfterAnErrorNoCallBegins) {
  CallTimes times;
  EXPECT_TRUE(times.MayCall(kStart));
  times.OnError(kStart);
  EXPECT_FALSE(times.MayCall(kStart + milliseconds(99)));
  EXPECT_TRUE(times.MayCall(kStart + milliseconds(100)));
  EXPECT_EQ(times.Next(true), kStart + milliseconds(100));
}

}  // namespace
}  // namespace muster::sdk
