#include "base/words/types.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TypesTest, ATokenOfANewerIncarnationIsLargerThanEveryOlderOne) {
  constexpr uint64_t kCountMax = (uint64_t{1} << LeaseToken::kCountBits) - 1;
  const LeaseToken last_of_first(MasterIncarnation(1), kCountMax);
  const LeaseToken first_of_second(MasterIncarnation(2), 0);
  EXPECT_LT(last_of_first, first_of_second);
  EXPECT_LT(LeaseToken(), LeaseToken(MasterIncarnation(1), 0));
  EXPECT_EQ(LeaseToken::FromValue(last_of_first.value()), last_of_first);
  EXPECT_EQ(last_of_first.incarnation(), MasterIncarnation(1));
  EXPECT_EQ(last_of_first.count(), kCountMax);
  EXPECT_EQ(ToString(LeaseToken(MasterIncarnation(3), 4)), "3.4");
}

TEST(TypesDeathTest, ACounterThatRunsOverStopsTheProcess) {
  EXPECT_DEATH(LeaseToken(MasterIncarnation(uint64_t{1} << 24), 0), "ran over");
  EXPECT_DEATH(LeaseToken(MasterIncarnation(1), uint64_t{1} << LeaseToken::kCountBits), "ran over");
}

TEST(TypesTest, ShardsAreOrderedByDatasetThenEpochThenIndex) {
  const ShardId shard{DatasetId(1), EpochIndex(2), ShardIndex(3)};
  EXPECT_EQ(ToString(shard), "1/2/3");
  EXPECT_LT(shard, (ShardId{DatasetId(1), EpochIndex(2), ShardIndex(4)}));
  EXPECT_LT((ShardId{DatasetId(1), EpochIndex(2), ShardIndex(4)}),
            (ShardId{DatasetId(1), EpochIndex(3), ShardIndex(0)}));
}

}  // namespace
}  // namespace muster
