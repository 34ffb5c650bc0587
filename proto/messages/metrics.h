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

/// Counts of positives and negatives by predicted probability, merged by adding bins. A bin is a
/// 64th of an octave of the smaller one of p and 1 - p, down to 2^-33. So they are as fine
/// for a click rate of 0.001 % as for one of a half.
struct ScoreHistogram {
  static constexpr uint32_t kBins = 4096;
  /// The bins that are not empty, ascending, below kBins: a shard fills few, and the master keeps
  /// the histograms of many shards.
  std::vector<uint32_t> bins;
  /// Of each of them.
  std::vector<uint64_t> positives, negatives;
  /// False: the bins are kBins equal parts of [0, 1]. Only journals of jobs that began under
  /// Muster 0.2 have such bins.
  bool by_octave = false;
  /// Sum of the predicted probabilities, which is the number of positives that they expect.
  double predicted = 0;
  /// Memory of a filled bin.
  static constexpr size_t kBinBytes = sizeof(uint32_t) + 2 * sizeof(uint64_t);
  static void Fields(auto& f, auto& s) {
    f(2, "bins", s.bins, {.most = kBins});
    f(3, "positives", s.positives, {.most = kBins});
    f(4, "negatives", s.negatives, {.most = kBins});
    f(5, "by_octave", s.by_octave);
    f(6, "predicted", s.predicted);
  }
  /// Lists of different lengths, or bins that do not ascend.
  std::optional<std::string> Wrong() const;
  friend bool operator==(const ScoreHistogram&, const ScoreHistogram&) = default;
};

/// What a shard reports besides its training. It travels with the done, and is merged exactly once.
struct ShardMetrics {
  uint64_t records = 0;
  uint64_t rejected_records = 0;
  /// "file:line: reason", at most kRejectSamplesMax.
  std::vector<std::string> reject_samples;
  std::map<std::string, WeightedMean> means;
  std::map<std::string, ScoreHistogram> aucs;
  /// Minibatches of training whose metrics are of weights that had seen them: an earlier run of
  /// them is in the weights, and its metrics are lost.
  uint64_t minibatches_again = 0;
  /// Of an evaluation: training records of later epochs that the weights may have seen. The master
  /// fills it in; of several shards it is the largest.
  uint64_t records_later = 0;
  static constexpr size_t kRejectSamplesMax = 10;
  static void Fields(auto& f, auto& s) {
    f(1, "records", s.records);
    f(2, "rejected_records", s.rejected_records);
    f(3, "reject_samples", s.reject_samples, {.most = kRejectSamplesMax});
    f(4, "means", s.means, {.most = most::kMetricsOfShard, .text_most = most::kNameBytes});
    f(5, "aucs", s.aucs, {.most = most::kMetricsOfShard, .text_most = most::kNameBytes});
    f(6, "minibatches_again", s.minibatches_again);
    f(7, "records_later", s.records_later);
  }
  friend bool operator==(const ShardMetrics&, const ShardMetrics&) = default;
};

/// Adds a record of which the model predicts that it is positive with `probability` in [0, 1].
void AddScore(ScoreHistogram* histogram, float probability, bool positive);
/// The same with the logit of the probability, ln(p / (1 - p)), any finite number: it tells
/// probabilities apart that a float32 rounds to 1.
void AddLogit(ScoreHistogram* histogram, float logit, bool positive);
void Merge(ShardMetrics* into, const ShardMetrics& from);
/// The approximate memory in bytes, including names and bins.
size_t MemoryOf(const ShardMetrics& metrics);

/// The area under the ROC curve, where two records of one bin count as half a pair; NaN: one of the
/// classes is empty. Source: the Mann-Whitney form of the AUC (Fawcett, "An introduction to ROC
/// analysis", 2006, section 7).
double Auc(const ScoreHistogram& histogram);
/// The average precision: the mean, over the positives, of the share of positives among the records
/// that score at least as high. NaN: there is no positive. Source: Zhu, "Recall, precision and
/// average precision", 2004, as a sum of steps (not interpolated).
double AveragePrecision(const ScoreHistogram& histogram);
/// Predicted positives divided by observed ones: above 1, the model promises too much. NaN: there
/// is no positive.
double Calibration(const ScoreHistogram& histogram);

/// The values of all metrics by name. A mean whose weights are all 0 has none. A histogram `NAME`
/// has its area under that name, and two more unless the trainer has metrics of these names itself:
/// `NAME.average_precision` and `NAME.calibration`. NaN: a class of it is empty.
std::map<std::string, double> ValuesOf(const ShardMetrics& metrics);
/// One of ValuesOf; none: there is no such value.
std::optional<double> MetricOf(const ShardMetrics& metrics, const std::string& name);

}  // namespace muster
