#include "sharding/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster {
namespace {

void AddBins(std::vector<uint64_t>* into, const std::vector<uint64_t>& from) {
  if (into->size() < from.size()) into->resize(from.size());
  for (size_t bin = 0; bin < from.size(); ++bin) (*into)[bin] += from[bin];
}

}  // namespace

void AddScore(AucHistogram* histogram, double score, bool positive) {
  histogram->positives.resize(AucHistogram::kBins);
  histogram->negatives.resize(AucHistogram::kBins);
  const double clamped = std::isnan(score) ? 0.0 : std::clamp(score, 0.0, 1.0);
  const auto bin =
      std::min(static_cast<uint32_t>(clamped * AucHistogram::kBins), AucHistogram::kBins - 1);
  ++(positive ? histogram->positives : histogram->negatives)[bin];
}

void Merge(ShardMetrics* into, const ShardMetrics& from) {
  into->records += from.records;
  into->rejected_records += from.rejected_records;
  for (const std::string& sample : from.reject_samples) {
    if (into->reject_samples.size() >= ShardMetrics::kRejectSamplesMax) break;
    into->reject_samples.push_back(sample);
  }
  for (const auto& [name, mean] : from.means) {
    WeightedMean& target = into->means[name];
    target.sum += mean.sum;
    target.weight += mean.weight;
  }
  for (const auto& [name, histogram] : from.aucs) {
    AucHistogram& target = into->aucs[name];
    AddBins(&target.positives, histogram.positives);
    AddBins(&target.negatives, histogram.negatives);
  }
}

double Auc(const AucHistogram& histogram) {
  const size_t bins = std::min(histogram.positives.size(), histogram.negatives.size());
  double positives = 0;
  double negatives = 0;
  double ranked_above = 0;  // pairs in which the positive scores higher; a tie is half a pair
  for (size_t bin = 0; bin < bins; ++bin) {
    const auto positive = static_cast<double>(histogram.positives[bin]);
    const auto negative = static_cast<double>(histogram.negatives[bin]);
    ranked_above += positive * (negatives + negative / 2);
    positives += positive;
    negatives += negative;
  }
  if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
  return ranked_above / (positives * negatives);
}

}  // namespace muster
