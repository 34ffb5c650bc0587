#include "sharding/shard_layout.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace muster {
namespace {

using Range = ShardLayout::Range;

TEST(ShardLayoutTest, ShardsNeverCrossASourceAndTheLastOneIsShort) {
  const ShardLayout layout({10, 0, 3, 8}, 2, 2);
  EXPECT_EQ(layout.shard_count(), 6u);
  EXPECT_EQ(layout.record_count(), 21u);
  EXPECT_EQ(layout.RangeOf(0), (Range{0, 0, 4, 2}));
  EXPECT_EQ(layout.RangeOf(1), (Range{0, 4, 4, 2}));
  EXPECT_EQ(layout.RangeOf(2), (Range{0, 8, 2, 1}));
  EXPECT_EQ(layout.RangeOf(3), (Range{2, 0, 3, 2}));  // source 1 is empty; the last minibatch short
  EXPECT_EQ(layout.RangeOf(4), (Range{3, 0, 4, 2}));
  EXPECT_EQ(layout.RangeOf(5), (Range{3, 4, 4, 2}));
}

TEST(ShardLayoutTest, WithoutRecordsThereIsNoShard) {
  EXPECT_EQ(ShardLayout().shard_count(), 0u);
  EXPECT_EQ(ShardLayout({0, 0}, 4, 4).shard_count(), 0u);
}

TEST(ShardLayoutTest, EveryRecordIsInExactlyOneShard) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    std::vector<uint64_t> sources(rng.Below(6));
    for (uint64_t& records : sources) records = rng.Below(40);
    const ShardLayout layout(sources, static_cast<uint32_t>(1 + rng.Below(5)),
                             static_cast<uint32_t>(1 + rng.Below(4)));
    uint32_t source = 0;
    uint64_t record = 0;
    for (uint64_t number = 0; number < layout.shard_count(); ++number) {
      const Range range = layout.RangeOf(number);
      while (source < sources.size() && record == sources[source]) {
        ++source;
        record = 0;
      }
      ASSERT_EQ(range.source, source) << "seed " << seed;
      ASSERT_EQ(range.first_record, record) << "seed " << seed;
      ASSERT_GT(range.record_count, 0u);
      ASSERT_LE(range.record_count, layout.records_per_shard());
      record += range.record_count;
      ASSERT_LE(record, sources[source]);
    }
    while (source < sources.size() && record == sources[source]) {
      ++source;
      record = 0;
    }
    ASSERT_EQ(source, sources.size()) << "records left over, seed " << seed;
  }
}

}  // namespace
}  // namespace muster
