#include "master/core/pushed_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

DoneShards DoneUpTo(uint64_t last) {
  DoneShards done;
  for (uint64_t i = 1; i <= last; ++i) {
    done.Add({DoneSeq(i), {DatasetId(0), EpochIndex(0), ShardIndex(i)}, LeaseToken()});
  }
  return done;
}
std::vector<uint64_t> SeqsOf(const std::vector<DoneShard>& shards) {
  std::vector<uint64_t> seqs;
  for (const DoneShard& shard : shards) seqs.push_back(shard.seq.value());
  return seqs;
}

TEST(PushedPartsTest, AShardHasItsPartsAsOfItsOwnSeq) {
  const PushedParts pushed;
  EXPECT_EQ(pushed.SeqOf(DoneSeq(3)), DoneSeq(3));
  EXPECT_EQ(pushed.FirstLacking(), std::nullopt);
  EXPECT_EQ(pushed.HeldUpTo(DoneSeq(5)), DoneSeq(5));
  EXPECT_EQ(SeqsOf(pushed.PushedAfter(DoneSeq(2), DoneUpTo(4))), (std::vector<uint64_t>{3, 4}));
}

TEST(PushedPartsTest, ASnapshotHoldsNothingFromAShardThatLacksPartsOn) {
  PushedParts pushed;
  pushed.Lose(DoneSeq(4));
  pushed.Lose(DoneSeq(3));
  EXPECT_EQ(pushed.FirstLacking(), DoneSeq(3));
  EXPECT_EQ(pushed.HeldUpTo(DoneSeq(9)), DoneSeq(2));
  pushed.PushedAgain(DoneSeq(3), DoneSeq(7));
  EXPECT_EQ(pushed.FirstLacking(), DoneSeq(4));
  EXPECT_EQ(pushed.HeldUpTo(DoneSeq(6)), DoneSeq(2)) << "it was asked for before the replay";
  EXPECT_EQ(pushed.HeldUpTo(DoneSeq(7)), DoneSeq(3));
  pushed.PushedAgain(DoneSeq(4), DoneSeq(8));
  EXPECT_EQ(pushed.HeldUpTo(DoneSeq(8)), DoneSeq(8));
}

TEST(PushedPartsTest, ALaterRestoreTakesAReplayAwayAgain) {
  PushedParts pushed;
  pushed.PushedAgain(DoneSeq(1), DoneSeq(5));
  pushed.Lose(DoneSeq(2));
  EXPECT_EQ(SeqsOf(pushed.PushedAfter(DoneSeq(3), DoneUpTo(4))), (std::vector<uint64_t>{1, 4}))
      << "what lacks parts already is not lost again";
}

TEST(PushedPartsTest, ForgetsShardsThatAreNoLongerDone) {
  PushedParts pushed;
  for (uint64_t i = 1; i <= 4; ++i) pushed.Lose(DoneSeq(i));
  pushed.DropUpTo(DoneSeq(1));
  pushed.DropAfter(DoneSeq(3));
  EXPECT_FALSE(pushed.Lacks(DoneSeq(1)));
  EXPECT_TRUE(pushed.Lacks(DoneSeq(2)));
  EXPECT_TRUE(pushed.Lacks(DoneSeq(3)));
  EXPECT_FALSE(pushed.Lacks(DoneSeq(4)));
}

}  // namespace
}  // namespace muster
