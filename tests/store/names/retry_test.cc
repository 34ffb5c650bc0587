#include "store/names/retry.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(RetriesTest, PausesDoubleUpToTheLongestAndEnd) {
  Retries retries(
      {.first = milliseconds(100), .longest = milliseconds(400), .total = milliseconds(2'000)},
      TimePoint(), 1);
  TimePoint now;
  milliseconds upper(100);
  int tries = 0;
  while (const auto wait = retries.After(now)) {
    EXPECT_GE(*wait, upper / 2);
    EXPECT_LT(*wait, upper);
    now += *wait;
    upper = std::min(upper * 2, milliseconds(400));
    ASSERT_LT(++tries, 20);
  }
  EXPECT_GE(tries, 5);
  EXPECT_LE(now, TimePoint(milliseconds(2'000)));
}

TEST(RetriesTest, TimeOfTheRequestsCounts) {
  Retries retries({.total = milliseconds(1'000)}, TimePoint(), 1);
  EXPECT_TRUE(retries.After(TimePoint()).has_value());
  EXPECT_FALSE(retries.After(TimePoint(milliseconds(990))).has_value());
}

TEST(RetriesTest, TimeOfATransferThatWasCutDoesNotCount) {
  Retries retries({.first = milliseconds(100), .total = milliseconds(1'000)}, TimePoint(), 1);
  TimePoint now;
  int tries = 0;
  milliseconds pauses(0);
  while (true) {
    retries.Begin(now);
    now += std::chrono::seconds(30);  // the bytes of a part on a slow line
    const auto wait = retries.After(now, {}, TryTime::kExcused);
    if (!wait.has_value()) break;
    pauses += std::chrono::duration_cast<milliseconds>(*wait);
    now += *wait;
    ASSERT_LT(++tries, 20);
  }
  EXPECT_GE(tries, 3);
  EXPECT_LE(pauses, milliseconds(1'000)) << "the pauses count";
}

TEST(RetriesTest, AServiceMayAskForALongerPause) {
  Retries retries({.total = milliseconds(5'000)}, TimePoint(), 1);
  EXPECT_EQ(retries.After(TimePoint(), milliseconds(3'000)), milliseconds(3'000));
  EXPECT_GE(retries.After(TimePoint(), milliseconds(1)), milliseconds(100)) << "not a shorter one";
  EXPECT_EQ(retries.After(TimePoint(), std::chrono::hours(1)), milliseconds(5'000))
      << "the last try is at the end of the time";
}

TEST(RetriesTest, APauseThatIsAskedForIsANumberOfSeconds) {
  EXPECT_EQ(AskedPause("3"), std::chrono::seconds(3));
  EXPECT_EQ(AskedPause("100000000"), std::chrono::hours(1));
  for (const char* other :
       {"", "-1", "1.5", " 1", "Fri, 31 Dec 1999 23:59:59 GMT", "99999999999"}) {
    EXPECT_EQ(AskedPause(other).count(), 0) << other;
  }
}

TEST(RetriesTest, ClientsDoNotComeTogether) {
  Retries one({}, TimePoint(), 1), other({}, TimePoint(), 2);
  EXPECT_NE(one.After(TimePoint()), other.After(TimePoint()));
}

}  // namespace
}  // namespace muster
