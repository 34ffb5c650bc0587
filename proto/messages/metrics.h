#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/words/limits.h"

namespace muster {

/// A weighted mean that can be merged: sum of value * weight, and sum of weights.
struct WeightedMean {
  double sum = 0;
  double weight = 0;
  static void Fields(auto& f, auto& s) { f(2, "sum", s.sum), f(3, "weight", s.weight); }
  friend bool operator==(const WeightedMean&, const WeightedMean&) = default;
};

/// Counts of positives and negatives by predicted score in [0, 1], kBins equal bins. Merging adds
/// bins; the area under the ROC curve counts a tie within a bin as half. Source: the Mann-Whitney
/// form of the AUC (Fawcett, "An introduction to ROC analysis", 2006, section 7).
struct AucHistogram {
  static constexpr uint32_t kBins = 4096;
  /// The bins that are not empty, ascending, below kBins: a shard fills few, and the master keeps
  /// the histograms of many shards.
  std::vector<uint32_t> bins;
  /// Of each of them.
  std::vector<uint64_t> positives, negatives;
  /// Memory of a filled bin.
  static constexpr size_t kBinBytes = sizeof(uint32_t) + 2 * sizeof(uint64_t);
  static void Fields(auto& f, auto& s) {
    f(2, "bins", s.bins, {.most = kBins});
    f(3, "positives", s.positives, {.most = kBins});
    f(4, "negatives", s.negatives, {.most = kBins});
  }
  /// Lists of different lengths, or bins that do not ascend.
  std::optional<std::string> Wrong() const;
  friend bool operator==(const AucHistogram&, const AucHistogram&) = default;
};

/// What a shard reports besides its training. It travels with the done, and is merged exactly once.
struct ShardMetrics {
  uint64_t records = 0;
  uint64_t rejected_records = 0;
  /// "file:line: reason", at most kRejectSamplesMax.
  std::vector<std::string> reject_samples;
  std::map<std::string, WeightedMean> means;
  std::map<std::string, AucHistogram> aucs;
  /// Minibatches of training whose metrics are of weights that had seen them: an earlier run of
  /// them is in the weights, and its metrics are lost.
  uint64_t minibatches_again = 0;
  static constexpr size_t kRejectSamplesMax = 10;
  static void Fields(auto& f, auto& s) {
    f(1, "records", s.records);
    f(2, "rejected_records", s.rejected_records);
    f(3, "reject_samples", s.reject_samples, {.most = kRejectSamplesMax});
    f(4, "means", s.means, {.most = most::kMetricsOfShard, .text_most = most::kNameBytes});
    f(5, "aucs", s.aucs, {.most = most::kMetricsOfShard, .text_most = most::kNameBytes});
    f(6, "minibatches_again", s.minibatches_again);
  }
  friend bool operator==(const ShardMetrics&, const ShardMetrics&) = default;
};

/// Adds `score` in [0, 1] (clamped; NaN counts as 0) of a record with this label.
void AddScore(AucHistogram* histogram, double score, bool positive);
void Merge(ShardMetrics* into, const ShardMetrics& from);
/// The approximate memory in bytes, including names and bins.
size_t MemoryOf(const ShardMetrics& metrics);
/// The area under the ROC curve, or NaN if one of the classes is empty.
double Auc(const AucHistogram& histogram);
/// The value of a metric: of a mean, or the area of a histogram; NaN: a class of it is empty. None:
/// there is no such metric, or nothing was weighed: all weights of its mean are 0.
std::optional<double> MetricOf(const ShardMetrics& metrics, const std::string& name);

}  // namespace muster
