#include "kafka/internal/idle_fetches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::kafka::internal {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class IdleFetchesTest : public ::testing::Test {
 protected:
  static IdleFetches::Partition P(uint32_t partition) { return {"t", partition}; }

  IdleFetches idle_{{.most = 3, .unused_max = seconds(5)}};
  TimePoint now_{seconds(100)};
};

TEST_F(IdleFetchesTest, TheLongestUnusedStopsFirst) {
  for (uint32_t p = 0; p < 3; ++p) idle_.Add(P(p), false, now_ + seconds(p));
  EXPECT_THAT(idle_.TakeSurplus(0, now_ + seconds(3)), IsEmpty());
  idle_.Add(P(0), false, now_ + seconds(3));  // used again
  EXPECT_THAT(idle_.TakeSurplus(1, now_ + seconds(3)), ElementsAre(P(1)));
  EXPECT_THAT(idle_.TakeSurplus(3, now_ + seconds(3)), ElementsAre(P(2), P(0)));
  EXPECT_TRUE(idle_.empty());
}

TEST_F(IdleFetchesTest, ThoseThatAreExpectedStopLast) {
  idle_.Add(P(0), true, now_);
  idle_.Add(P(1), false, now_ + seconds(1));
  idle_.Add(P(2), false, now_ + seconds(2));
  EXPECT_THAT(idle_.TakeSurplus(2, now_ + seconds(2)), ElementsAre(P(1), P(2)));
  EXPECT_THAT(idle_.TakeSurplus(3, now_ + seconds(2)), ElementsAre(P(0)));
}

TEST_F(IdleFetchesTest, WhatIsUnusedForLongStopsEvenIfItIsExpected) {
  idle_.Add(P(0), true, now_);
  idle_.Add(P(1), false, now_ + seconds(1));
  EXPECT_THAT(idle_.TakeSurplus(0, now_ + seconds(4)), IsEmpty());
  EXPECT_THAT(idle_.TakeSurplus(0, now_ + seconds(5)), ElementsAre(P(0)));
  EXPECT_FALSE(idle_.empty());
}

TEST_F(IdleFetchesTest, WhatIsReadDoesNotStop) {
  idle_.Add(P(0), false, now_);
  idle_.Remove(P(0));
  idle_.Remove(P(7));
  EXPECT_THAT(idle_.TakeSurplus(9, now_ + seconds(60)), IsEmpty());
}

}  // namespace
}  // namespace muster::kafka::internal
