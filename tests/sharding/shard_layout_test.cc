#include "sharding/shard_layout.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace muster {
namespace {

using LayoutShard = ShardLayout::Shard;
using ::testing::ElementsAre;

constexpr EpochIndex kFirst(0);

std::vector<ShardLayout::Source> Sources(const std::vector<uint64_t>& records) {
  std::vector<ShardLayout::Source> sources;
  for (const uint64_t count : records) sources.push_back({.records = count});
  return sources;
}

std::vector<RecordRun> Runs(const ShardLayout& layout, uint64_t index,
                            EpochIndex epoch = EpochIndex(0)) {
  return layout.RunsOf(epoch, ShardIndex(index));
}

TEST(ShardLayoutTest, AShardSpansSourcesAndMinibatchesAreEven) {
  const ShardLayout layout(Sources({10, 0, 3, 8}),
                           {.minibatch_size = 4, .minibatches_per_shard = 2});
  // 21 records are 6 minibatches of 3 or 4, and these are 3 shards.
  EXPECT_EQ(layout.record_count(), 21u);
  EXPECT_EQ(layout.minibatch_count(), 6u);
  EXPECT_EQ(layout.shard_count(), 3u);
  EXPECT_EQ(layout.At(kFirst, ShardIndex(0)), (LayoutShard{7, 2, 0}));
  EXPECT_EQ(layout.At(kFirst, ShardIndex(1)), (LayoutShard{7, 2, 2}));
  EXPECT_EQ(layout.At(kFirst, ShardIndex(2)), (LayoutShard{7, 2, 4}));
  EXPECT_THAT(Runs(layout, 0), ElementsAre(RecordRun{0, 0, 7}));
  EXPECT_THAT(Runs(layout, 1),
              ElementsAre(RecordRun{0, 7, 3}, RecordRun{2, 0, 3}, RecordRun{3, 0, 1}));
  EXPECT_THAT(Runs(layout, 2), ElementsAre(RecordRun{3, 1, 7}));
}

TEST(ShardLayoutTest, AnotherHeaderEndsAShard) {
  const std::vector<ShardLayout::Source> sources = {{5, 1}, {2, 1}, {4, 2}, {3, 1}};
  ShardLayout::Options options{.minibatch_size = 4, .minibatches_per_shard = 4};
  const ShardLayout in_order(sources, options);
  EXPECT_EQ(in_order.shard_count(), 3u);
  EXPECT_THAT(Runs(in_order, 0), ElementsAre(RecordRun{0, 0, 5}, RecordRun{1, 0, 2}));
  EXPECT_THAT(Runs(in_order, 1), ElementsAre(RecordRun{2, 0, 4}));
  EXPECT_THAT(Runs(in_order, 2), ElementsAre(RecordRun{3, 0, 3}));
  options.shuffle = Shuffle::kAll;  // no order to keep
  EXPECT_EQ(ShardLayout(sources, options).shard_count(), 2u);
}

TEST(ShardLayoutTest, WithoutRecordsThereIsNoShard) {
  EXPECT_EQ(ShardLayout().shard_count(), 0u);
  EXPECT_EQ(
      ShardLayout(Sources({0, 0}), {.minibatch_size = 4, .minibatches_per_shard = 4}).shard_count(),
      0u);
}

/// Sources, sizes and shuffles of all kinds.
struct Drawn {
  std::vector<ShardLayout::Source> sources;
  ShardLayout::Options options;
};
Drawn Draw(uint64_t seed) {
  Rng rng(seed);
  Drawn drawn;
  drawn.sources.resize(rng.Below(30));
  for (ShardLayout::Source& source : drawn.sources) {
    source = {.records = rng.Below(rng.Below(2) == 0 ? 5 : 300), .header = rng.Below(10) / 8};
  }
  drawn.options = {.seed = seed,
                   .minibatch_size = static_cast<uint32_t>(1 + rng.Below(40)),
                   .minibatches_per_shard = static_cast<uint32_t>(1 + rng.Below(12)),
                   .shuffle = static_cast<Shuffle>(rng.Below(3))};
  return drawn;
}

TEST(ShardLayoutTest, EveryRecordIsInExactlyOneShard) {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    const auto [sources, options] = Draw(seed);
    const ShardLayout layout(sources, options);
    const EpochIndex epoch(static_cast<uint32_t>(seed % 7));
    std::vector<std::vector<int>> seen;
    for (const ShardLayout::Source& source : sources) seen.emplace_back(source.records);
    uint64_t minibatches = 0;
    for (uint64_t index = 0; index < layout.shard_count(); ++index) {
      const LayoutShard shard = layout.At(epoch, ShardIndex(index));
      minibatches += shard.minibatch_count;
      ASSERT_LE(shard.minibatch_count, options.minibatches_per_shard) << "seed " << seed;
      uint64_t records = 0;
      std::set<uint64_t> headers;
      for (const RecordRun& run : Runs(layout, index, epoch)) {
        ASSERT_GT(run.record_count, 0u) << "seed " << seed;
        ASSERT_LE(run.first_record + run.record_count, sources[run.source].records) << seed;
        headers.insert(sources[run.source].header);
        records += run.record_count;
        for (uint32_t i = 0; i < run.record_count; ++i) ++seen[run.source][run.first_record + i];
      }
      ASSERT_EQ(records, shard.record_count) << "seed " << seed;
      ASSERT_EQ(headers.size(), 1u) << "seed " << seed;
    }
    ASSERT_EQ(minibatches, layout.minibatch_count()) << "seed " << seed;
    for (const auto& source : seen) ASSERT_THAT(source, ::testing::Each(1)) << "seed " << seed;
  }
}

TEST(ShardLayoutTest, MinibatchesDifferByOneRecordAndShardsByOneMinibatch) {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    auto [sources, options] = Draw(seed);
    for (ShardLayout::Source& source : sources) source.header = 0;
    const ShardLayout layout(sources, options);
    ASSERT_EQ(layout.minibatch_count(),
              (layout.record_count() + options.minibatch_size - 1) / options.minibatch_size);
    std::set<uint32_t> sizes, counts;
    for (uint64_t index = 0; index < layout.shard_count(); ++index) {
      const LayoutShard shard = layout.At(kFirst, ShardIndex(index));
      counts.insert(shard.minibatch_count);
      // As readers cut them.
      sizes.insert(shard.record_count / shard.minibatch_count);
      sizes.insert((shard.record_count + shard.minibatch_count - 1) / shard.minibatch_count);
    }
    if (layout.shard_count() == 0) continue;
    ASSERT_LE(*sizes.rbegin() - *sizes.begin(), 1u) << "seed " << seed;
    ASSERT_LE(*sizes.rbegin(), options.minibatch_size) << "seed " << seed;
    ASSERT_LE(*counts.rbegin() - *counts.begin(), 1u) << "seed " << seed;
  }
}

// What a worker gets of a shard has a limit.
TEST(ShardLayoutTest, ShardsOfTinySourcesAreSmallerThanAskedFor) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    auto [sources, options] = Draw(seed);
    const uint64_t asked = ShardLayout(sources, options).shard_count();
    options.runs_max = 2 + seed % 40;
    const ShardLayout layout(sources, options);
    size_t most = 0;
    uint64_t records = 0;
    for (uint64_t index = 0; index < layout.shard_count(); ++index) {
      for (const uint32_t epoch : {0, 1, 5}) {
        const size_t runs = Runs(layout, index, EpochIndex(epoch)).size();
        most = std::max(most, runs);
        ASSERT_LE(runs, layout.most_runs()) << "seed " << seed;
      }
      records += layout.At(kFirst, ShardIndex(index)).record_count;
    }
    ASSERT_EQ(records, layout.record_count()) << "seed " << seed;
    ASSERT_EQ(layout.is_cut_smaller(), layout.shard_count() > asked) << "seed " << seed;
    if (options.minibatch_size <= options.runs_max) {
      ASSERT_LE(most, options.runs_max) << "seed " << seed;
    }
  }
}

TEST(ShardLayoutTest, AShardHasNoMoreRunsThanAWorkerTakes) {
  // 150,000 files of a record each, a few of them empty or with another header.
  std::vector<ShardLayout::Source> sources(150'000, {.records = 1, .header = 1});
  for (size_t i = 0; i < sources.size(); i += 1'000) sources[i].records = 0;
  for (size_t i = 500; i < sources.size(); i += 30'000) sources[i].header = 2;
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kShards, Shuffle::kAll}) {
    const ShardLayout layout(
        sources, {.minibatch_size = 1'024, .minibatches_per_shard = 1'024, .shuffle = shuffle});
    // In the order of the files, those of the other header part stretches of 30,000 files.
    EXPECT_EQ(layout.is_cut_smaller(), shuffle != Shuffle::kNone);
    uint64_t records = 0;
    for (uint64_t index = 0; index < layout.shard_count(); ++index) {
      const std::vector<RecordRun> runs = Runs(layout, index);
      EXPECT_LE(runs.size(), most::kRunsOfShard);
      for (const RecordRun& run : runs) records += run.record_count;
    }
    EXPECT_EQ(records, 149'850u);
  }
}

TEST(ShardLayoutTest, AMinibatchOfTooManySourcesIsSeen) {
  const ShardLayout layout(Sources(std::vector<uint64_t>(100, 1)),
                           {.minibatch_size = 90, .minibatches_per_shard = 2, .runs_max = 40});
  EXPECT_GT(layout.most_runs(), layout.runs_max());
  EXPECT_LE(ShardLayout(Sources({1'000}), {.minibatch_size = 90, .runs_max = 40}).most_runs(), 40u);
}

TEST(ShardLayoutTest, PositionsOfAnEpochGoOn) {
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kAll}) {
    const ShardLayout layout(
        Sources({10'000, 77, 3}),
        {.minibatch_size = 10, .minibatches_per_shard = 7, .shuffle = shuffle});
    uint64_t minibatches = 0;
    for (uint64_t index = 0; index < layout.shard_count(); ++index) {
      const LayoutShard shard = layout.At(kFirst, ShardIndex(index));
      ASSERT_EQ(shard.first_minibatch, minibatches);
      minibatches += shard.minibatch_count;
    }
  }
}

// Of two files with other labels, each shard has its share, and so has each half of a sorted file.
TEST(ShardLayoutTest, AShuffledShardIsASampleOfTheWhole) {
  const ShardLayout layout(
      Sources({300'000, 100'000}),
      {.minibatch_size = 256, .minibatches_per_shard = 16, .shuffle = Shuffle::kAll});
  for (uint64_t index = 0; index < layout.shard_count(); ++index) {
    double second = 0, late = 0, all = 0;
    for (const RecordRun& run : Runs(layout, index, EpochIndex(3))) {
      if (run.source == 1) second += run.record_count;
      if (run.source == 0 && run.first_record >= 150'000) late += run.record_count;
      all += run.record_count;
    }
    EXPECT_NEAR(second / all, 0.25, 0.02) << index;
    EXPECT_NEAR(late / all, 0.375, 0.02) << index;
  }
}

TEST(ShardLayoutTest, EpochsAndDatasetsHaveOtherOrders) {
  ShardLayout::Options options{
      .seed = 5, .minibatch_size = 8, .minibatches_per_shard = 16, .shuffle = Shuffle::kAll};
  const ShardLayout layout(Sources({10'000}), options);
  EXPECT_EQ(Runs(layout, 3), Runs(layout, 3));
  EXPECT_NE(Runs(layout, 3), Runs(layout, 3, EpochIndex(1)));
  options.dataset = DatasetId(1);
  EXPECT_NE(Runs(layout, 3), Runs(ShardLayout(Sources({10'000}), options), 3));
}

TEST(ShardLayoutTest, LargeShardsHaveMoreBlocks) {
  EXPECT_EQ(ShardLayout::BlockRecords(1, 1), 1u);
  EXPECT_EQ(ShardLayout::BlockRecords(256, 1), 4u);    // 64 blocks
  EXPECT_EQ(ShardLayout::BlockRecords(256, 4), 16u);   // 64 blocks
  EXPECT_EQ(ShardLayout::BlockRecords(256, 8), 16u);   // 128 blocks
  EXPECT_EQ(ShardLayout::BlockRecords(256, 16), 16u);  // 256 blocks
  EXPECT_EQ(ShardLayout::BlockRecords(256, 64), 64u);  // 256 blocks
}

TEST(ShardLayoutTest, NeverChanges) {
  // Golden: journals and running workers depend on these.
  const ShardLayout layout(
      Sources({300, 150}),
      {.seed = 5, .minibatch_size = 32, .minibatches_per_shard = 4, .shuffle = Shuffle::kAll});
  EXPECT_EQ(layout.block_records(), 2u);
  const std::vector<RecordRun> runs = Runs(layout, 1, EpochIndex(2));
  EXPECT_THAT(std::vector(runs.begin(), runs.begin() + 4),
              ElementsAre(RecordRun{0, 190, 2}, RecordRun{0, 16, 2}, RecordRun{0, 290, 2},
                          RecordRun{0, 112, 2}));
}

}  // namespace
}  // namespace muster
