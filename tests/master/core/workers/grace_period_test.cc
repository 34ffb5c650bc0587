#include "master/core/workers/grace_period.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::seconds;

const TimePoint kEnd{seconds(10)};

TEST(GracePeriodTest, IsOverWhenNobodyIsAwaited) {
  GracePeriod grace;
  EXPECT_FALSE(grace.on());
  grace.Begin({"worker-0", "worker-1"}, kEnd);
  grace.Settle("worker-0");
  grace.Settle("worker-2");
  EXPECT_FALSE(grace.Tick(TimePoint(seconds(1))));
  EXPECT_TRUE(grace.on());
  grace.Settle("worker-1");
  EXPECT_TRUE(grace.on()) << "only a tick ends it: until then everybody of this step asks alike";
  EXPECT_TRUE(grace.Tick(TimePoint(seconds(1))));
  EXPECT_FALSE(grace.on());
  EXPECT_FALSE(grace.Tick(TimePoint(seconds(1)))) << "once";
}

TEST(GracePeriodTest, IsOverAtItsEndWhichForgivenTimePutsOff) {
  GracePeriod grace;
  grace.Begin({"worker-0"}, kEnd);
  grace.Forgive(seconds(5));
  EXPECT_FALSE(grace.Tick(kEnd + seconds(4)));
  EXPECT_TRUE(grace.Tick(kEnd + seconds(5)));
}

}  // namespace
}  // namespace muster
