#include "sharding/shard_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace muster {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> Numbers(const ShardOrder& order) {
  std::vector<uint64_t> numbers;
  for (uint64_t index = 0; index < order.shard_count(); ++index) {
    numbers.push_back(order.NumberAt(ShardIndex(index)));
  }
  return numbers;
}

TEST(ShardOrderTest, IsABijectionForEveryCount) {
  for (const uint64_t count : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 4097}) {
    std::vector<uint64_t> numbers =
        Numbers(ShardOrder(7, DatasetId(0), EpochIndex(0), count, true));
    std::sort(numbers.begin(), numbers.end());
    for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(numbers[i], i) << "count " << count;
  }
}

TEST(ShardOrderTest, StaysInsideHugeCounts) {
  const uint64_t count = (uint64_t{1} << 52) + 12345;
  const ShardOrder order(7, DatasetId(0), EpochIndex(0), count, true);
  std::set<uint64_t> seen;
  for (uint64_t index = 0; index < 1000; ++index) {
    const uint64_t number = order.NumberAt(ShardIndex(count - 1 - index));
    ASSERT_LT(number, count);
    seen.insert(number);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(ShardOrderTest, WithoutShuffleIsFileOrder) {
  EXPECT_THAT(Numbers(ShardOrder(7, DatasetId(0), EpochIndex(3), 4, false)),
              ElementsAre(0, 1, 2, 3));
}

TEST(ShardOrderTest, DiffersBySeedDatasetAndEpoch) {
  const auto base = Numbers(ShardOrder(7, DatasetId(0), EpochIndex(0), 100, true));
  EXPECT_EQ(base, Numbers(ShardOrder(7, DatasetId(0), EpochIndex(0), 100, true)));
  EXPECT_NE(base, Numbers(ShardOrder(8, DatasetId(0), EpochIndex(0), 100, true)));
  EXPECT_NE(base, Numbers(ShardOrder(7, DatasetId(1), EpochIndex(0), 100, true)));
  EXPECT_NE(base, Numbers(ShardOrder(7, DatasetId(0), EpochIndex(1), 100, true)));
}

TEST(ShardOrderTest, ScattersNeighbours) {
  // Of a random permutation of 10,000, about 2 neighbours stay neighbours.
  const auto numbers = Numbers(ShardOrder(7, DatasetId(0), EpochIndex(0), 10'000, true));
  int adjacent = 0;
  for (size_t i = 1; i < numbers.size(); ++i) {
    const uint64_t a = numbers[i - 1];
    const uint64_t b = numbers[i];
    if (a + 1 == b || b + 1 == a) ++adjacent;
  }
  EXPECT_LT(adjacent, 20);
}

TEST(ShardOrderTest, NeverChanges) {
  // Golden: journals and running workers depend on these.
  EXPECT_THAT(Numbers(ShardOrder(7, DatasetId(1), EpochIndex(2), 10, true)),
              ElementsAre(3, 8, 7, 4, 6, 0, 2, 9, 5, 1));
  const auto numbers = [](uint64_t count) {
    return Numbers(ShardOrder(7, DatasetId(1), EpochIndex(2), count, true));
  };
  // On both sides of where the network grows.
  EXPECT_THAT(numbers(4), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(numbers(5), ElementsAre(3, 0, 1, 4, 2));
  EXPECT_THAT(numbers(16), ElementsAre(3, 8, 11, 13, 6, 0, 2, 9, 12, 10, 15, 7, 5, 4, 14, 1));
  EXPECT_THAT(numbers(17), ElementsAre(5, 16, 11, 15, 10, 8, 12, 1, 13, 9, 6, 0, 3, 7, 4, 2, 14));
  EXPECT_THAT(RecordOrder(12345, 8), ElementsAre(3, 4, 6, 2, 5, 0, 7, 1));
  EXPECT_EQ(RecordSeed(7, {DatasetId(1), EpochIndex(2), ShardIndex(3)}), 1521180315826725817u);
}

TEST(RecordOrderTest, IsAPermutationAndSeedZeroIsFileOrder) {
  std::vector<uint32_t> order = RecordOrder(99, 1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
  EXPECT_THAT(RecordOrder(0, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(RecordOrder(5, 0).empty());
}

TEST(RecordOrderTest, SeedsDifferByShardAndEpochAndAreNeverZero) {
  std::set<uint64_t> seeds;
  for (uint32_t epoch = 0; epoch < 10; ++epoch) {
    for (uint64_t index = 0; index < 100; ++index) {
      seeds.insert(RecordSeed(7, {DatasetId(0), EpochIndex(epoch), ShardIndex(index)}));
    }
  }
  EXPECT_EQ(seeds.size(), 1000u);
  EXPECT_FALSE(seeds.contains(0));
}

}  // namespace
}  // namespace muster
