#include "proto/messages/metrics.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/random.h"

namespace muster {
namespace {

TEST(MetricsTest, AucCountsOrderedPairsAndHalfOfTheTies) {
  ScoreHistogram histogram;
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
  std::vector<std::pair<float, bool>> records;
  ScoreHistogram histogram;
  for (int i = 0; i < 600; ++i) {
    const bool positive = rng.Below(4) == 0;
    // One score a bin, so that binning loses nothing.
    const float score = static_cast<float>(rng.Below(64) + (positive ? 16 : 1)) / 4096;
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
  ScoreHistogram all, full;
  ShardMetrics merged;
  for (int shard = 0; shard < 20; ++shard) {
    ShardMetrics one;
    one.aucs["auc"];
    for (uint64_t i = rng.Below(50); i > 0; --i) {
      const float score = static_cast<float>(rng.Below(129)) / 128;
      const bool positive = rng.Below(2) == 0;
      AddScore(&one.aucs["auc"], score, positive);
      AddScore(&all, score, positive);
    }
    Merge(&merged, one);
  }
  EXPECT_EQ(merged.aucs["auc"], all);
  // Every bin filled, from the last to the first, and once more.
  for (int time = 0; time < 2; ++time) {
    for (int step = 64 * 32; step-- > 0;) {
      const float p = std::ldexp(1 + (static_cast<float>(step % 64) + 0.5F) / 64, step / 64 - 33);
      AddScore(&full, p, time == 0);
      AddLogit(&full, -std::log(p / (1 - p)), time == 0);
    }
  }
  ASSERT_EQ(full.bins.size(), size_t{ScoreHistogram::kBins});
  EXPECT_THAT(full.positives, ::testing::Each(1));
  EXPECT_THAT(full.negatives, ::testing::Each(1));
}

TEST(MetricsTest, TheEndsAndTheMiddleHaveTheirBins) {
  ScoreHistogram histogram;
  for (const float p : {0.0F, 1e-30F, 1.0F, 0.5F, std::nextafter(0.5F, 0.0F)}) {
    AddScore(&histogram, p, true);
  }
  for (const float logit : {-1e30F, -23.0F, 0.0F, 23.0F, 1e30F}) {
    AddLogit(&histogram, logit, false);
  }
  constexpr uint32_t kHalf = ScoreHistogram::kBins / 2;
  EXPECT_EQ(histogram.bins, (std::vector<uint32_t>{0, kHalf - 1, kHalf, 2 * kHalf - 1}));
  EXPECT_EQ(histogram.positives, (std::vector<uint64_t>{2, 1, 1, 1}));
  EXPECT_EQ(histogram.negatives, (std::vector<uint64_t>{2, 0, 1, 2}));
  EXPECT_NEAR(histogram.predicted, 0 + 0 + 1 + 0.5 + 0.5 + 0 + 0.5 + 2, 1e-6);
}

/// Source: Box and Muller, "A note on the generation of random normal deviates", 1958.
double Normal(Rng* rng) {
  return std::sqrt(-2 * std::log(1 - rng->Uniform())) * std::cos(2 * M_PI * rng->Uniform());
}

/// Scores of a model whose logits are normal, and labels that are drawn from its probabilities.
struct Drawn {
  std::vector<std::pair<float, bool>> by_logit;
  ScoreHistogram logits, probabilities;
};
Drawn Draw(double mean_logit, double stddev, int records) {
  Rng rng(11);
  Drawn drawn;
  for (int i = 0; i < records; ++i) {
    const auto logit = static_cast<float>(mean_logit + stddev * Normal(&rng));
    const double p = 1 / (1 + std::exp(-double{logit}));
    const bool positive = rng.Uniform() < p;
    drawn.by_logit.emplace_back(logit, positive);
    AddLogit(&drawn.logits, logit, positive);
    AddScore(&drawn.probabilities, static_cast<float>(p), positive);
  }
  std::sort(drawn.by_logit.begin(), drawn.by_logit.end());
  return drawn;
}

struct Exact {
  double auc = 0, average_precision = 0;
};
/// Of scores without ties.
Exact ExactOf(const std::vector<std::pair<float, bool>>& ascending) {
  double positives = 0, negatives = 0, pairs = 0, precisions = 0, above = 0;
  for (const auto& [score, positive] : ascending) {
    if (positive) pairs += negatives;
    ++(positive ? positives : negatives);
  }
  for (size_t i = ascending.size(); i-- > 0;) {
    if (ascending[i].second) precisions += ++above / static_cast<double>(ascending.size() - i);
  }
  return {pairs / (positives * negatives), precisions / positives};
}

TEST(MetricsTest, RarePositivesAreCountedAsExactlyAsFrequentOnes) {
  // Base rates from one half to about one in 100,000, and a model that is sure of nearly all.
  for (const double mean : {0.0, -3.0, -7.0, -9.5, -13.5, 9.5}) {
    const Drawn drawn = Draw(mean, 2, 300'000);
    const Exact exact = ExactOf(drawn.by_logit);
    EXPECT_NEAR(Auc(drawn.logits), exact.auc, 1e-4) << mean;
    EXPECT_NEAR(Auc(drawn.probabilities), exact.auc, 1e-4) << mean;
    EXPECT_NEAR(AveragePrecision(drawn.logits), exact.average_precision,
                0.01 * exact.average_precision)
        << mean;
  }
}

TEST(MetricsTest, CalibrationIsPredictedToObservedPositives) {
  ScoreHistogram histogram;
  EXPECT_TRUE(std::isnan(Calibration(histogram)));
  EXPECT_TRUE(std::isnan(AveragePrecision(histogram)));
  AddScore(&histogram, 0.25F, true);
  AddScore(&histogram, 0.5F, false);
  EXPECT_DOUBLE_EQ(Calibration(histogram), 0.75);
  EXPECT_DOUBLE_EQ(AveragePrecision(histogram), 0.5);
  AddScore(&histogram, 0.75F, true);
  EXPECT_DOUBLE_EQ(AveragePrecision(histogram), (1 + 2.0 / 3) / 2);
}

TEST(MetricsTest, CountsOfEarlierVersionsAreTakenAlong) {
  // Two bins of [0, 1] in 4,096 equal parts.
  ShardMetrics metrics;
  metrics.aucs["auc"] = {.bins = {409, 3686}, .positives = {1, 3}, .negatives = {3, 1}};
  EXPECT_DOUBLE_EQ(Auc(metrics.aucs["auc"]), (3 * 3 + 3 * 0.5 + 3 * 0.5) / 16);
  ShardMetrics added;
  AddScore(&added.aucs["auc"], 0.99F, true);
  AddScore(&added.aucs["auc"], 0.01F, false);
  ShardMetrics other = added;
  Merge(&other, metrics);
  Merge(&metrics, added);
  EXPECT_EQ(metrics, other);
  EXPECT_EQ(metrics.aucs["auc"].bins.size(), 4u);
  EXPECT_NEAR(metrics.aucs["auc"].predicted, 4 * 0.1 + 4 * 0.9 + 1, 0.01);
  EXPECT_DOUBLE_EQ(Auc(metrics.aucs["auc"]), (5 + 3 * 4 + 3 * 0.5 + 1 + 3 * 0.5) / 25);
}

TEST(MetricsTest, AHistogramHasThreeValues) {
  ShardMetrics metrics;
  AddScore(&metrics.aucs["auc"], 0.75F, true);
  AddScore(&metrics.aucs["auc"], 0.5F, false);
  metrics.means["auc.calibration"] = {7, 1};
  EXPECT_EQ(ValuesOf(metrics),
            (std::map<std::string, double>{
                {"auc", 1}, {"auc.average_precision", 1}, {"auc.calibration", 7}}))
      << "the trainer's own metric keeps its name";
  AddScore(&metrics.aucs["a.b"], 0.5F, true);
  AddScore(&metrics.aucs["a.b"], 0.25F, true);
  AddScore(&metrics.aucs["a.b"], 0.25F, false);
  AddScore(&metrics.aucs["a.b.calibration"], 0.5F, true);
  AddScore(&metrics.aucs["a.b.calibration"], 0.75F, false);
  const std::map<std::string, double> values = ValuesOf(metrics);
  EXPECT_EQ(values.size(), 8u);
  for (const auto& [name, value] : values) EXPECT_EQ(MetricOf(metrics, name), value) << name;
  for (const char* name :
       {"auc.", "auc.precision", "a.average_precision", ".calibration", "a.b."}) {
    EXPECT_EQ(MetricOf(metrics, name), std::nullopt) << name;
  }
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
    EXPECT_GE(grown(), name.size() + sizeof(ScoreHistogram) + ScoreHistogram::kBinBytes);
    AddScore(&metrics.aucs[name + std::to_string(i)], 0.25, true);
    EXPECT_EQ(grown(), ScoreHistogram::kBinBytes);
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
  EXPECT_EQ(a.aucs["auc"].positives, (std::vector<uint64_t>{0, 2}));
  EXPECT_EQ(a.aucs["auc"].negatives, (std::vector<uint64_t>{1, 0}));
  EXPECT_EQ(a.aucs["only_b"], b.aucs["only_b"]);

  ShardMetrics empty;
  Merge(&empty, b);
  EXPECT_EQ(empty, b);
}

}  // namespace
}  // namespace muster
