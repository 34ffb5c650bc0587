#include "proto/messages/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/random.h"

namespace muster {
namespace {

TEST(MetricsTest, AucCountsOrderedPairsAndHalfOfTheTies) {
  AucHistogram histogram;
  EXPECT_TRUE(std::isnan(Auc(histogram)));
  AddScore(&histogram, 0.9, true);
  EXPECT_TRUE(std::isnan(Auc(histogram)));  // no negative yet
  AddScore(&histogram, 0.1, false);
  EXPECT_DOUBLE_EQ(Auc(histogram), 1.0);
  AddScore(&histogram, 0.9, false);  // a tie: 1.5 of 2 pairs
  EXPECT_DOUBLE_EQ(Auc(histogram), 0.75);
  AddScore(&histogram, 0.0, true);  // 1.5 of 4 pairs
  EXPECT_DOUBLE_EQ(Auc(histogram), 0.375);
}

TEST(MetricsTest, AMetricIsAMeanOrAnAreaOrAbsent) {
  ShardMetrics metrics;
  metrics.means["loss"] = {3, 4};
  metrics.means["unweighted"] = {0, 0};
  AddScore(&metrics.aucs["auc"], 0.9, true);
  EXPECT_EQ(MetricOf(metrics, "loss"), 0.75);
  EXPECT_EQ(MetricOf(metrics, "unweighted"), std::nullopt) << "and not NaN";
  EXPECT_EQ(MetricOf(metrics, "other"), std::nullopt);
  EXPECT_TRUE(std::isnan(MetricOf(metrics, "auc").value())) << "there is no negative yet";
  AddScore(&metrics.aucs["auc"], 0.1, false);
  EXPECT_EQ(MetricOf(metrics, "auc"), 1.0);
}

TEST(MetricsTest, AucEqualsThePairwiseDefinition) {
  Rng rng(5);
  std::vector<std::pair<double, bool>> records;
  AucHistogram histogram;
  for (int i = 0; i < 600; ++i) {
    const bool positive = rng.Below(4) == 0;
    // On bin edges, so that binning loses nothing.
    const double score =
        static_cast<double>(rng.Below(64) + (positive ? 16 : 0)) / AucHistogram::kBins;
    records.emplace_back(score, positive);
    AddScore(&histogram, score, positive);
  }
  double above = 0;
  double pairs = 0;
  for (const auto& [positive_score, positive] : records) {
    for (const auto& [negative_score, other] : records) {
      if (!positive || other) continue;
      pairs += 1;
      above += positive_score > negative_score ? 1 : positive_score == negative_score ? 0.5 : 0;
    }
  }
  EXPECT_NEAR(Auc(histogram), above / pairs, 1e-12);
}

TEST(MetricsTest, MergedHistogramsAreThoseOfAllScores) {
  Rng rng(7);
  AucHistogram all, full;
  ShardMetrics merged;
  for (int shard = 0; shard < 20; ++shard) {
    ShardMetrics one;
    one.aucs["auc"];
    for (uint64_t i = rng.Below(50); i > 0; --i) {
      const double score = static_cast<double>(rng.Below(100)) / 100;
      const bool positive = rng.Below(2) == 0;
      AddScore(&one.aucs["auc"], score, positive);
      AddScore(&all, score, positive);
    }
    Merge(&merged, one);
  }
  EXPECT_EQ(merged.aucs["auc"], all);
  // Every bin filled, from the last to the first, and once more.
  for (uint32_t bin = 2 * AucHistogram::kBins; bin-- > 0;) {
    const double score = (bin % AucHistogram::kBins + 0.5) / AucHistogram::kBins;
    AddScore(&full, score, bin % 2 == 0);
  }
  ASSERT_EQ(full.bins.size(), size_t{AucHistogram::kBins});
  EXPECT_EQ(full.bins[7], 7u);
  EXPECT_EQ(full.positives[7], 0u);
  EXPECT_EQ(full.negatives[7], 2u);
}

TEST(MetricsTest, ScoresOutsideTheRangeAreClampedAndNanIsZero) {
  AucHistogram histogram;
  AddScore(&histogram, 1.0, true);
  AddScore(&histogram, 7.0, true);
  AddScore(&histogram, -1.0, true);
  AddScore(&histogram, std::numeric_limits<double>::quiet_NaN(), true);
  EXPECT_EQ(histogram, (AucHistogram{{0, AucHistogram::kBins - 1}, {2, 2}, {0, 0}}));
}

// The master stops granting by it: what grows must be seen to grow.
TEST(MetricsTest, MemoryGrowsWithEveryNameSampleAndBin) {
  ShardMetrics metrics;
  size_t bytes = MemoryOf(metrics);
  EXPECT_GE(bytes, sizeof(ShardMetrics));
  const auto grown = [&] { return MemoryOf(metrics) - std::exchange(bytes, MemoryOf(metrics)); };
  const std::string name(1'000, 'n');
  for (int i = 0; i < 2; ++i) {
    metrics.reject_samples.push_back(name);
    EXPECT_GE(grown(), name.size());
    EXPECT_LT(MemoryOf(metrics), 100'000u);
    metrics.means[name + std::to_string(i)] = {1, 1};
    EXPECT_GE(grown(), name.size() + sizeof(WeightedMean));
    AddScore(&metrics.aucs[name + std::to_string(i)], 0.5, true);
    EXPECT_GE(grown(), name.size() + sizeof(AucHistogram) + AucHistogram::kBinBytes);
    AddScore(&metrics.aucs[name + std::to_string(i)], 0.25, true);
    EXPECT_EQ(grown(), AucHistogram::kBinBytes);
  }
}

TEST(MetricsTest, MergeAddsEverythingAndKeepsABoundedSample) {
  ShardMetrics a;
  a.records = 10;
  a.rejected_records = 1;
  a.reject_samples = {"f:1: bad"};
  a.means["loss"] = {.sum = 4, .weight = 2};
  AddScore(&a.aucs["auc"], 0.5, true);
  ShardMetrics b = a;
  b.reject_samples.assign(ShardMetrics::kRejectSamplesMax, "f:2: bad");
  b.means["other"] = {.sum = 1, .weight = 1};
  AddScore(&b.aucs["auc"], 0.25, false);
  AddScore(&b.aucs["only_b"], 0.25, false);

  Merge(&a, b);
  EXPECT_EQ(a.records, 20u);
  EXPECT_EQ(a.rejected_records, 2u);
  EXPECT_EQ(a.reject_samples.size(), ShardMetrics::kRejectSamplesMax);
  EXPECT_EQ(a.reject_samples.front(), "f:1: bad");
  EXPECT_EQ(a.means["loss"], (WeightedMean{.sum = 8, .weight = 4}));
  EXPECT_EQ(a.means["other"], (WeightedMean{.sum = 1, .weight = 1}));
  EXPECT_EQ(a.aucs["auc"],
            (AucHistogram{{AucHistogram::kBins / 4, AucHistogram::kBins / 2}, {0, 2}, {1, 0}}));
  EXPECT_EQ(a.aucs["only_b"], b.aucs["only_b"]);

  ShardMetrics empty;
  Merge(&empty, b);
  EXPECT_EQ(empty, b);
}

}  // namespace
}  // namespace muster
