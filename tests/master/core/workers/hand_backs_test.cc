#include "master/core/workers/hand_backs.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

const ShardId kShard{DatasetId(0), EpochIndex(0), ShardIndex(1)};
const ShardId kOther{DatasetId(0), EpochIndex(0), ShardIndex(2)};

LeaseToken Token(uint64_t count) {
  return LeaseToken(MasterIncarnation(1), count);
}

TEST(HandBacksTest, TheThirdInARowWithoutProgressIsCharged) {
  HandBacks counts;
  uint64_t token = 0;
  EXPECT_FALSE(counts.Count(kShard, Token(++token), 2)) << "it came further than nothing";
  for (int charge = 0; charge < 3; ++charge) {
    EXPECT_FALSE(counts.Count(kShard, Token(++token), 2));
    EXPECT_FALSE(counts.Count(kOther, Token(++token), 0)) << "another shard";
    EXPECT_FALSE(counts.Count(kShard, Token(++token), 1));
    EXPECT_TRUE(counts.Count(kShard, Token(++token), 2));
    counts.Forget(kOther);
  }
}

TEST(HandBacksTest, ProgressBeginsTheRowAnew) {
  HandBacks counts;
  uint64_t token = 0;
  int charged = 0;
  // One minibatch more in every third run: never three in a row without.
  for (uint32_t run = 0; run < 60; ++run) {
    charged += counts.Count(kShard, Token(++token), 1 + run / 3) ? 1 : 0;
  }
  EXPECT_EQ(charged, 0);
}

TEST(HandBacksTest, ARepeatAndAnOlderLeaseCountForNothing) {
  HandBacks counts;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(counts.Count(kShard, Token(5), 0));
  for (uint64_t token = 1; token < 5; ++token) EXPECT_FALSE(counts.Count(kShard, Token(token), 0));
  EXPECT_FALSE(counts.Count(kShard, Token(6), 0));
  EXPECT_TRUE(counts.Count(kShard, Token(7), 0));
}

TEST(HandBacksTest, AfterADoneItCountsAnew) {
  HandBacks counts;
  counts.Count(kShard, Token(1), 0);
  counts.Count(kShard, Token(2), 0);
  counts.Forget(kShard);
  EXPECT_FALSE(counts.Count(kShard, Token(3), 0));
}

}  // namespace
}  // namespace muster
