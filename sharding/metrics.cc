#include "sharding/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace muster {
namespace {

/// The place of `bin` in the list, which gets it if it lacks it.
AucHistogram::Bin& BinOf(AucHistogram* histogram, uint32_t bin) {
  std::vector<AucHistogram::Bin>& bins = histogram->bins;
  if (bins.size() == AucHistogram::kBins) return bins[bin];
  auto it = std::lower_bound(
      bins.begin(), bins.end(), bin,
      [](const AucHistogram::Bin& one, uint32_t number) { return one.bin < number; });
  if (it == bins.end() || it->bin != bin) it = bins.insert(it, AucHistogram::Bin{bin, 0, 0});
  return *it;
}

void Add(AucHistogram* into, const AucHistogram& from) {
  std::vector<AucHistogram::Bin> sum;
  sum.reserve(into->bins.size() + from.bins.size());
  auto mine = into->bins.begin();
  for (const AucHistogram::Bin& added : from.bins) {
    while (mine != into->bins.end() && mine->bin < added.bin) sum.push_back(*mine++);
    AucHistogram::Bin& bin = sum.emplace_back(added);
    if (mine == into->bins.end() || mine->bin != added.bin) continue;
    bin.positives += mine->positives;
    bin.negatives += mine->negatives;
    ++mine;
  }
  sum.insert(sum.end(), mine, into->bins.end());
  into->bins = std::move(sum);
}

}  // namespace

void AddScore(AucHistogram* histogram, double score, bool positive) {
  const double clamped = std::isnan(score) ? 0.0 : std::clamp(score, 0.0, 1.0);
  const auto bin =
      std::min(static_cast<uint32_t>(clamped * AucHistogram::kBins), AucHistogram::kBins - 1);
  AucHistogram::Bin& found = BinOf(histogram, bin);
  ++(positive ? found.positives : found.negatives);
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
  for (const auto& [name, histogram] : from.aucs) Add(&into->aucs[name], histogram);
}

size_t MemoryOf(const ShardMetrics& metrics) {
  constexpr size_t kEntryBytes = 64;  // a node of a map, or a string
  size_t bytes = sizeof(metrics);
  for (const std::string& sample : metrics.reject_samples) bytes += kEntryBytes + sample.size();
  for (const auto& [name, mean] : metrics.means) bytes += kEntryBytes + name.size() + sizeof(mean);
  for (const auto& [name, histogram] : metrics.aucs) {
    bytes += kEntryBytes + name.size() + sizeof(histogram) +
             histogram.bins.size() * sizeof(AucHistogram::Bin);
  }
  return bytes;
}

double Auc(const AucHistogram& histogram) {
  double positives = 0;
  double negatives = 0;
  double ranked_above = 0;  // pairs in which the positive scores higher; a tie is half a pair
  for (const AucHistogram::Bin& bin : histogram.bins) {
    const auto positive = static_cast<double>(bin.positives);
    const auto negative = static_cast<double>(bin.negatives);
    ranked_above += positive * (negatives + negative / 2);
    positives += positive;
    negatives += negative;
  }
  if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
  return ranked_above / (positives * negatives);
}

}  // namespace muster
