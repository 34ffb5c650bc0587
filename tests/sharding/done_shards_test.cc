#include "sharding/done_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <vector>

#include "base/random.h"

namespace muster {
namespace {

using ::testing::IsNull;
using ::testing::Pointee;

ShardId ShardAt(uint64_t index, uint32_t epoch = 0) {
  return {DatasetId(0), EpochIndex(epoch), ShardIndex(index)};
}
DoneShard DoneAt(uint64_t seq, const ShardId& shard) {
  return {DoneSeq(seq), shard, LeaseToken(MasterIncarnation(1), seq)};
}

TEST(DoneShards, AShardIsFoundAndItsNeighboursAreNot) {
  DoneShards done;
  done.Add(DoneAt(7, ShardAt(3)));
  EXPECT_THAT(done.Find(ShardAt(3)), Pointee(DoneAt(7, ShardAt(3))));
  EXPECT_TRUE(done.Contains(DoneSeq(7)));
  EXPECT_FALSE(done.Contains(DoneSeq(6)) || done.Contains(DoneSeq(8)));
  for (const ShardId& other : {ShardAt(2), ShardAt(4), ShardAt(3, 1), ShardAt(515),
                               ShardId{DatasetId(1), EpochIndex(0), ShardIndex(3)}}) {
    EXPECT_THAT(done.Find(other), IsNull()) << ToString(other);
    EXPECT_FALSE(done.Contains(other)) << ToString(other);
  }
  EXPECT_EQ(done.TakeFirst(), DoneAt(7, ShardAt(3)));
  EXPECT_TRUE(done.empty());
  EXPECT_FALSE(done.Contains(ShardAt(3)));
}

TEST(DoneShards, AnEpochOfOneShardHasOnePlace) {
  DoneShards done;
  for (uint32_t epoch = 0; epoch < 1'000; ++epoch) done.Add(DoneAt(epoch + 1, ShardAt(0, epoch)));
  EXPECT_EQ(done.places(), 1'000u);
  while (!done.empty()) done.TakeFirst();
  EXPECT_EQ(done.places(), 0u);
}

/// Shards of two epochs become DONE in any order, leave at both ends and come back; a map says what
/// must be there.
TEST(DoneShards, AgreesWithAMap) {
  Rng random(5);
  DoneShards done;
  std::map<DoneSeq, DoneShard> model;
  uint64_t seq = 0;
  for (int step = 0; step < 20'000; ++step) {
    const ShardId shard = ShardAt(random.Below(2'000), static_cast<uint32_t>(random.Below(2)));
    if (!done.Contains(shard)) {
      seq += 1 + random.Below(3);
      done.Add(DoneAt(seq, shard));
      model[DoneSeq(seq)] = DoneAt(seq, shard);
    } else if (random.Below(3) == 0) {
      ASSERT_EQ(done.TakeLast(), model.rbegin()->second);
      model.erase(std::prev(model.end()));
    } else {
      ASSERT_EQ(done.TakeFirst(), model.begin()->second);
      model.erase(model.begin());
    }
    ASSERT_EQ(done.size(), model.size());
  }
  ASSERT_GT(model.size(), 10u);
  std::vector<DoneShard> in_order;
  for (const auto& [at, one] : model) {
    in_order.push_back(one);
    EXPECT_THAT(done.Find(one.shard), Pointee(one));
    EXPECT_TRUE(done.Contains(at));
  }
  EXPECT_EQ(std::vector<DoneShard>(done.begin(), done.end()), in_order);
}

}  // namespace
}  // namespace muster
