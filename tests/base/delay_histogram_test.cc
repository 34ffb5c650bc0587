#include "base/delay_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(DelayHistogramTest, NothingHasNoQuantile) {
  const DelayHistogram none;
  EXPECT_EQ(none.Quantile(0.5), std::nullopt);
  EXPECT_TRUE(none.buckets().empty());
}

TEST(DelayHistogramTest, QuantilesAreAtMostAQuarterTooLarge) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> delays(6, 3);
  DelayHistogram histogram;
  std::vector<int64_t> all;
  for (int i = 0; i < 5'000; ++i) {
    all.push_back(static_cast<int64_t>(delays(random)));
    histogram.Add(milliseconds(all.back()));
  }
  std::sort(all.begin(), all.end());
  for (const double q : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    const int64_t exact = all[static_cast<size_t>(std::ceil(q * 5'000)) - 1];
    EXPECT_GT(histogram.Quantile(q)->count(), exact);
    EXPECT_LE(histogram.Quantile(q)->count(), exact + std::max<int64_t>(exact / 4, 1));
  }
  for (int64_t bound = 4; bound < int64_t{1} << 25; bound *= 2) {
    EXPECT_EQ(histogram.CountBelow(milliseconds(bound)),
              static_cast<uint64_t>(std::lower_bound(all.begin(), all.end(), bound) - all.begin()));
  }
}

TEST(DelayHistogramTest, BoundsOfWhatAClockCanSay) {
  DelayHistogram histogram;
  histogram.Add(milliseconds(-5));
  histogram.Add(milliseconds::max());
  EXPECT_EQ(histogram.buckets().size(), DelayHistogram::kBuckets);
  EXPECT_EQ(histogram.CountBelow(milliseconds(1)), 1u);
  EXPECT_EQ(histogram.CountBelow(milliseconds(0)), 0u);
  EXPECT_EQ(histogram.CountBelow(milliseconds(-5)), 0u);
  EXPECT_EQ(histogram.CountBelow(milliseconds(1 << 29)), 1u);
}

TEST(DelayHistogramTest, SmallDelaysHaveABucketEach) {
  DelayHistogram histogram;
  for (int ms = 0; ms <= 8; ++ms) histogram.Add(milliseconds(ms));
  EXPECT_EQ(histogram.sum(), milliseconds(36));
  for (int ms = 1; ms <= 8; ++ms) {
    EXPECT_EQ(histogram.CountBelow(milliseconds(ms)), static_cast<uint64_t>(ms));
    EXPECT_EQ(histogram.Quantile((ms - 0.5) / 9), milliseconds(ms));
  }
  EXPECT_EQ(histogram.Quantile(0), milliseconds(1));
  EXPECT_EQ(histogram.Quantile(1), milliseconds(10)) << "from 8 on, two share a bucket";
  EXPECT_EQ(histogram.buckets().size(), 9u);
}

TEST(DelayHistogramTest, GrowthNeverCountsTwice) {
  DelayHistogram before, now, sum;
  before.Add(milliseconds(10));
  now = before;
  now.Add(milliseconds(10));
  now.Add(milliseconds(700));
  sum.AddGrowth(before, now);
  EXPECT_EQ(sum.count(), 2u);
  EXPECT_EQ(sum.sum(), milliseconds(710));
  sum.AddGrowth(now, before);  // what shrank
  EXPECT_EQ(sum.count(), 2u);
  EXPECT_EQ(sum.sum(), milliseconds(710));
}

}  // namespace
}  // namespace muster
