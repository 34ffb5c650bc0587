#include "sharding/stream/stream_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <vector>

#include "base/random.h"
#include "base/words/limits.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr StreamCutOptions kOptions{
    .minibatch_size = 10, .minibatches_per_shard = 4, .max_delay = milliseconds(500)};
constexpr uint64_t kMany = 1'000;

TimePoint At(int ms) {
  return TimePoint(milliseconds(ms));
}
WallTime Wall(int ms) {
  return milliseconds(ms);
}
PartitionLook Look(uint32_t partition, uint64_t log_begin, uint64_t stable_end) {
  return {.partition = TopicPartition(partition), .log_begin = log_begin, .stable_end = stable_end};
}
OffsetRange Offsets(uint32_t partition, uint64_t begin, uint64_t end) {
  return {TopicPartition(partition), begin, end};
}
/// A shard of one range.
StreamShard Range(uint32_t partition, uint64_t begin, uint64_t end, uint64_t first_step,
                  int seen_ms = 0) {
  return {{Offsets(partition, begin, end)}, first_step, Wall(seen_ms)};
}

class StreamCutterTest : public ::testing::Test {
 protected:
  void See(const std::vector<PartitionLook>& looks, int ms) {
    cutter_.See(looks, At(ms), Wall(ms));
  }
  std::vector<StreamShard> CutAt(int ms, uint64_t shards_max = kMany) {
    std::vector<StreamShard> shards;
    for (const StreamCutter::Cut& cut : cutter_.CutDue(shards_max, At(ms))) {
      EXPECT_FALSE(cut.lost);
      shards.push_back(cut.shard);
    }
    return shards;
  }

  StreamCutter cutter_{kOptions, {}, 0};
};

TEST_F(StreamCutterTest, FullShardsAtOnceAndTheRestAfterADelay) {
  See({Look(0, 0, 95)}, 0);
  EXPECT_THAT(CutAt(1), ElementsAre(Range(0, 0, 40, 0), Range(0, 40, 80, 4)));
  EXPECT_THAT(CutAt(499), IsEmpty());
  EXPECT_THAT(CutAt(500), ElementsAre(Range(0, 80, 95, 8)));
  EXPECT_EQ(cutter_.next_step(), 10u) << "a short minibatch is one";
  See({Look(0, 0, 96)}, 600);
  EXPECT_THAT(CutAt(1'099), IsEmpty()) << "the delay is that of the first record that waits";
  EXPECT_THAT(CutAt(1'100), ElementsAre(Range(0, 95, 96, 10, 600)));
}

TEST_F(StreamCutterTest, WhatIsDueInManyPartitionsIsWholeMinibatchesTogether) {
  See({Look(0, 0, 6), Look(1, 0, 3), Look(2, 0, 0)}, 0);
  See({Look(0, 0, 6), Look(1, 0, 3), Look(2, 0, 30)}, 400);
  EXPECT_THAT(CutAt(499), IsEmpty());
  EXPECT_THAT(CutAt(500), ElementsAre(StreamShard{
                              {Offsets(0, 0, 6), Offsets(1, 0, 3), Offsets(2, 0, 1)}, 0, Wall(0)}))
      << "nine are due, and one that is not fills the minibatch";
  EXPECT_THAT(CutAt(899), IsEmpty()) << "the rest waits for its own time";
  EXPECT_THAT(CutAt(900), ElementsAre(Range(2, 1, 30, 1, 400)));
}

TEST_F(StreamCutterTest, TooFewRecordsAreEqualMinibatches) {
  See({Look(0, 0, 7), Look(1, 0, 16)}, 0);
  const std::vector<StreamShard> shards = CutAt(500);
  ASSERT_EQ(shards.size(), 1u);
  EXPECT_EQ(shards[0].offsets(), 23u);
  EXPECT_EQ(cutter_.next_step(), 3u) << "8, 8 and 7, and not 10, 10 and 3";
}

TEST_F(StreamCutterTest, ManyPartitionsAreSeveralShards) {
  std::vector<PartitionLook> looks;
  for (uint32_t i = 0; i < 50; ++i) looks.push_back(Look(i, 0, 3));
  See(looks, 0);
  EXPECT_THAT(CutAt(500, 1), SizeIs(1));
  const std::vector<StreamShard> shards = CutAt(500);
  ASSERT_EQ(shards.size(), 3u);
  for (const StreamShard& shard : shards) {
    EXPECT_GE(shard.offsets(), 30u);
    EXPECT_LE(shard.offsets(), 40u);
  }
  EXPECT_EQ(cutter_.next_step(), 15u);
}

/// A shard has an entry in the journal and in a message, so its size has a bound.
TEST_F(StreamCutterTest, AShardHasABoundedNumberOfRanges) {
  StreamCutter cutter({.minibatch_size = 100, .minibatches_per_shard = 100, .max_delay = {}}, {},
                      0);
  std::vector<PartitionLook> looks;
  for (uint32_t i = 0; i < 3'000; ++i) looks.push_back(Look(i, 0, 1));
  cutter.See(looks, At(0), Wall(0));
  const std::vector<StreamCutter::Cut> cuts = cutter.CutDue(kMany, At(0));
  ASSERT_EQ(cuts.size(), 3u);
  for (const StreamCutter::Cut& cut : cuts) {
    EXPECT_LE(cut.shard.ranges.size(), most::kRangesOfShard);
  }
}

TEST_F(StreamCutterTest, APartitionThatIsAtItsEndWaitsForTheOthers) {
  PartitionLook ended = Look(0, 0, 5), going = Look(1, 0, 3);
  ended.end = 5;
  going.end = 30;
  See({ended, going}, 0);
  EXPECT_THAT(CutAt(0), IsEmpty());
  going.stable_end = 30;
  See({ended, going}, 1);
  const std::vector<StreamShard> shards = CutAt(1);
  ASSERT_EQ(shards.size(), 1u);
  EXPECT_EQ(shards[0].offsets(), 35u);
  EXPECT_TRUE(cutter_.AtEnd());
}

TEST_F(StreamCutterTest, TopicPartitionsTakeTurns) {
  See({Look(0, 0, 80), Look(1, 0, 80), Look(2, 0, 0)}, 0);
  EXPECT_THAT(CutAt(0), ElementsAre(Range(0, 0, 40, 0), Range(1, 0, 40, 4), Range(0, 40, 80, 8),
                                    Range(1, 40, 80, 12)));
}

TEST_F(StreamCutterTest, ABoundHoldsBackAndTheTurnIsKept) {
  See({Look(0, 0, 400), Look(1, 0, 400)}, 0);
  EXPECT_THAT(CutAt(0, 1), ElementsAre(Range(0, 0, 40, 0)));
  EXPECT_THAT(CutAt(0, 1), ElementsAre(Range(1, 0, 40, 4)));
  EXPECT_THAT(CutAt(0, 0), IsEmpty());
  EXPECT_THAT(CutAt(0, 1), ElementsAre(Range(0, 40, 80, 8)));
}

TEST_F(StreamCutterTest, BeginsWhereItIsToldAndElseAtTheLogsBegin) {
  PartitionLook named = Look(0, 5, 60);
  named.begin = 20;
  See({named, Look(1, 7, 60)}, 0);
  EXPECT_THAT(CutAt(0), ElementsAre(Range(0, 20, 60, 0), Range(1, 7, 47, 4)));
  named.begin = 0;  // counts once
  named.stable_end = 100;
  See({named}, 1);
  EXPECT_THAT(CutAt(1), ElementsAre(Range(0, 60, 100, 8, 1)));
}

TEST_F(StreamCutterTest, TheLastRangeOfADatasetDoesNotWait) {
  EXPECT_FALSE(cutter_.AtEnd()) << "nothing is known yet";
  PartitionLook ends = Look(0, 0, 30);
  ends.end = 45;
  See({ends}, 0);
  EXPECT_THAT(CutAt(0), IsEmpty());
  EXPECT_FALSE(cutter_.AtEnd());
  See({Look(0, 0, 90)}, 1);
  EXPECT_THAT(CutAt(1), ElementsAre(Range(0, 0, 40, 0), Range(0, 40, 45, 4, 1)));
  EXPECT_TRUE(cutter_.AtEnd());
  See({Look(1, 0, 90)}, 2);
  EXPECT_THAT(CutAt(10'000), IsEmpty()) << "what lies behind the end is not the dataset's";
  EXPECT_TRUE(cutter_.AtEnd());
}

TEST_F(StreamCutterTest, AnEndBeforeTheBeginIsAnEmptyDataset) {
  PartitionLook none = Look(0, 0, 30);
  none.begin = 20;
  none.end = 10;
  See({none}, 0);
  EXPECT_THAT(CutAt(10'000), IsEmpty());
  EXPECT_TRUE(cutter_.AtEnd());
}

TEST_F(StreamCutterTest, WhatRetentionTookBeforeItWasCutIsARangeThatIsLost) {
  See({Look(0, 0, 10)}, 0);
  See({Look(0, 1'000, 1'050)}, 1);
  const std::vector<StreamCutter::Cut> cuts = cutter_.CutDue(1, At(2));
  ASSERT_EQ(cuts.size(), 2u) << "a lost range takes no room";
  EXPECT_TRUE(cuts[0].lost);
  EXPECT_EQ(cuts[0].shard, Range(0, 0, 1'000, 0, 0));
  EXPECT_FALSE(cuts[1].lost);
  EXPECT_EQ(cuts[1].shard, Range(0, 1'000, 1'040, 100, 1));
}

TEST_F(StreamCutterTest, ALogThatEndsBeforeWhatWasCutIsTruncated) {
  See({Look(0, 0, 40), Look(1, 0, 40)}, 0);
  CutAt(0);
  EXPECT_THAT(cutter_.Truncated(), IsEmpty());
  See({Look(0, 0, 0), Look(1, 0, 40)}, 1);
  EXPECT_THAT(cutter_.Truncated(), ElementsAre(TopicPartition(0)));
}

TEST_F(StreamCutterTest, ABeginBehindAnOpenTransactionIsNoTruncation) {
  PartitionLook later = Look(0, 0, 40);
  later.begin = 100;
  later.log_end = 100;
  See({later}, 0);
  EXPECT_THAT(cutter_.Truncated(), IsEmpty());
  EXPECT_THAT(CutAt(10'000), IsEmpty());
  later.log_end = 99;
  See({later}, 1);
  EXPECT_THAT(cutter_.Truncated(), ElementsAre(TopicPartition(0)));
}

TEST_F(StreamCutterTest, GoesOnFromItsPositions) {
  See({Look(0, 0, 50), Look(3, 0, 40)}, 0);
  CutAt(0);
  const std::vector<StreamPosition> positions = cutter_.TakeChanged();
  ASSERT_EQ(positions.size(), 2u);
  EXPECT_THAT(cutter_.TakeChanged(), IsEmpty());
  StreamCutter again(kOptions, positions, cutter_.next_step());
  again.See(std::vector{Look(0, 0, 90), Look(3, 0, 40)}, At(0), Wall(7));
  const std::vector<StreamCutter::Cut> cuts = again.CutDue(kMany, At(0));
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].shard, Range(0, 40, 80, 8, 7));
}

TEST_F(StreamCutterTest, WhatChangesIsToldOnce) {
  PartitionLook look = Look(0, 5, 20);
  See({look, Look(1, 0, 0)}, 0);
  EXPECT_THAT(cutter_.TakeChanged(),
              ElementsAre(StreamPosition{TopicPartition(0), 5, 5, std::nullopt},
                          StreamPosition{TopicPartition(1), 0, 0, std::nullopt}));
  See({look, Look(1, 0, 0)}, 1);
  EXPECT_THAT(cutter_.TakeChanged(), IsEmpty());
  look.end = 15;
  See({look, Look(1, 0, 0)}, 2);
  EXPECT_THAT(cutter_.TakeChanged(), ElementsAre(StreamPosition{TopicPartition(0), 5, 5, 15}));
  look.end = 90;
  See({look, Look(1, 0, 0)}, 3);
  EXPECT_THAT(cutter_.TakeChanged(), IsEmpty()) << "an end stays where it was first seen";
  EXPECT_THAT(CutAt(500), ElementsAre(Range(0, 5, 15, 0)));
  EXPECT_THAT(cutter_.TakeChanged(), ElementsAre(StreamPosition{TopicPartition(0), 5, 15, 15}));
}

// A topic that was created again may have fewer partitions.
TEST_F(StreamCutterTest, APartitionThatIsGoneIsTruncatedAndCutNoFurther) {
  See({Look(0, 0, 10), Look(1, 0, 100)}, 0);
  EXPECT_THAT(CutAt(0), ElementsAre(Range(1, 0, 40, 0), Range(1, 40, 80, 4)));
  See({Look(0, 0, 10)}, 1);
  EXPECT_THAT(cutter_.Truncated(), ElementsAre(TopicPartition(1)));
  EXPECT_THAT(CutAt(10'000), ElementsAre(Range(0, 0, 10, 8)));
  EXPECT_EQ(cutter_.ProgressOfAll()[1].stable_end, 0u);
  EXPECT_EQ(cutter_.ProgressOfAll()[1].log_end, 0u);
  See({Look(0, 0, 10), Look(1, 0, 100)}, 10'001);
  EXPECT_THAT(cutter_.Truncated(), IsEmpty());
  EXPECT_THAT(CutAt(20'000), ElementsAre(Range(1, 80, 100, 9)));
}

// The minibatches of a range are counted in 32 bits.
TEST_F(StreamCutterTest, ManyLostOffsetsAreSeveralRanges) {
  constexpr uint64_t kHalf = uint64_t{1} << 31;
  See({Look(0, 0, 10)}, 0);
  See({Look(0, 2 * kHalf + 5, 2 * kHalf + 45)}, 1);
  const std::vector<StreamCutter::Cut> cuts = cutter_.CutDue(1, At(1));
  ASSERT_EQ(cuts.size(), 4u);
  uint64_t begin = 0;
  for (const uint64_t end : {kHalf, 2 * kHalf, 2 * kHalf + 5}) {
    const StreamCutter::Cut& cut = cuts[begin / kHalf];
    EXPECT_TRUE(cut.lost);
    EXPECT_THAT(cut.shard.ranges, ElementsAre(Offsets(0, begin, end)));
    begin = end;
  }
  EXPECT_EQ(cuts[3].shard.ranges[0].begin, begin);
  EXPECT_FALSE(cuts[3].lost);
}

TEST_F(StreamCutterTest, WhatIsLostEndsWithTheDataset) {
  PartitionLook look = Look(0, 0, 10);
  look.end = 30;
  See({look}, 0);
  See({Look(0, 1'000, 1'050)}, 1);
  const std::vector<StreamCutter::Cut> cuts = cutter_.CutDue(kMany, At(1));
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_TRUE(cuts[0].lost);
  EXPECT_EQ(cuts[0].shard, Range(0, 0, 30, 0));
  EXPECT_TRUE(cutter_.AtEnd());
}

TEST_F(StreamCutterTest, AViewShowsWhatIsSeenAndWhatWaits) {
  PartitionLook look = Look(0, 3, 50);
  look.log_end = 60;
  See({look}, 7);
  StreamCutter::Progress view = cutter_.ProgressOfAll().at(0);
  EXPECT_EQ(view.position, (StreamPosition{TopicPartition(0), 3, 3, std::nullopt}));
  EXPECT_EQ(view.log_begin, 3u);
  EXPECT_EQ(view.stable_end, 50u);
  EXPECT_EQ(view.log_end, 60u);
  EXPECT_TRUE(view.seen);
  EXPECT_EQ(view.uncut_seen, Wall(7));
  EXPECT_EQ(CutAt(7).size(), 1u);
  EXPECT_EQ(cutter_.ProgressOfAll().at(0).uncut_seen, Wall(7)) << "[43, 50) waits";
  EXPECT_EQ(CutAt(507).size(), 1u);
  EXPECT_EQ(cutter_.ProgressOfAll().at(0).uncut_seen, std::nullopt);
  const StreamCutter again(kOptions, std::vector{view.position}, 0);
  EXPECT_FALSE(again.ProgressOfAll().at(0).seen) << "not by this one";
  EXPECT_THAT(again.Truncated(), IsEmpty());
}

TEST_F(StreamCutterTest, ManySightingsKeepTheAgeOfTheOldest) {
  for (int i = 1; i <= 2'000; ++i) See({Look(0, 0, static_cast<uint64_t>(i) % 2 + i / 2)}, i);
  const std::vector<StreamCutter::Progress> views = cutter_.ProgressOfAll();
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].uncut_seen, Wall(1));
  for (const StreamShard& shard : CutAt(2'000)) {
    const uint64_t begin = shard.ranges[0].begin;
    EXPECT_LE(shard.seen, Wall(static_cast<int>(2 * begin) + 2)) << begin;
  }
}

TEST_F(StreamCutterTest, MergedSightingsAreNoMoreThanOneTooOld) {
  for (int i = 1; i <= 129; ++i) See({Look(0, 0, static_cast<uint64_t>(i))}, i);
  EXPECT_THAT(CutAt(129), ElementsAre(Range(0, 0, 40, 0, 1), Range(0, 40, 80, 4, 41),
                                      Range(0, 80, 120, 8, 81)));
  EXPECT_EQ(cutter_.ProgressOfAll().at(0).uncut_seen, Wall(121));
}

/// Whatever grows, vanishes and stands still: every offset from the begin on lies in one shard.
TEST(StreamCutterProperty, RangesCoverEveryOffsetOnce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    StreamCutter cutter(kOptions, {}, 0);
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> logs;  // begin, end
    std::map<uint32_t, uint64_t> covered;
    uint64_t steps = 0;
    for (int ms = 0; ms < 3'000; ms += 100) {
      const auto partition = static_cast<uint32_t>(rng.Below(3));
      auto& [begin, end] = logs[partition];
      end += rng.Below(120);
      if (rng.Below(10) == 0) begin = std::max(begin, end - std::min<uint64_t>(end, 30));
      cutter.See(std::vector{Look(partition, begin, end)}, At(ms), Wall(ms));
      if (!covered.contains(partition)) covered[partition] = begin;
      if (rng.Below(20) == 0)
        cutter = StreamCutter(
            kOptions,
            [&] {
              std::vector<StreamPosition> all;
              for (const StreamCutter::Progress& view : cutter.ProgressOfAll())
                all.push_back(view.position);
              return all;
            }(),
            cutter.next_step());
      for (const StreamCutter::Cut& cut : cutter.CutDue(rng.Below(4), At(ms))) {
        for (const OffsetRange& range : cut.shard.ranges) {
          ASSERT_EQ(range.begin, covered[range.partition.value()]) << "seed " << seed;
          ASSERT_LT(range.begin, range.end);
          covered[range.partition.value()] = range.end;
        }
        ASSERT_EQ(cut.shard.first_step, steps);
        ASSERT_TRUE(cut.lost || cut.shard.offsets() <= 40);
        steps += StreamMinibatches(cut.shard.offsets(), 10);
      }
    }
    for (const auto& [partition, log] : logs) ASSERT_LE(covered[partition], log.second);
  }
}

}  // namespace
}  // namespace muster
