#include "proto/messages/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace muster {
namespace {

/// The place of `bin` in the lists; adds it if it is missing.
size_t PlaceOf(AucHistogram* histogram, uint32_t bin) {
  std::vector<uint32_t>& bins = histogram->bins;
  if (bins.size() == AucHistogram::kBins) return bin;
  const auto it = std::lower_bound(bins.begin(), bins.end(), bin);
  const auto place = it - bins.begin();
  if (it == bins.end() || *it != bin) {
    bins.insert(it, bin);
    histogram->positives.insert(histogram->positives.begin() + place, 0);
    histogram->negatives.insert(histogram->negatives.begin() + place, 0);
  }
  return static_cast<size_t>(place);
}

void Append(AucHistogram* to, const AucHistogram& from, size_t place) {
  to->bins.push_back(from.bins[place]);
  to->positives.push_back(from.positives[place]);
  to->negatives.push_back(from.negatives[place]);
}

void Add(AucHistogram* into, const AucHistogram& from) {
  AucHistogram sum;
  const size_t most = into->bins.size() + from.bins.size();
  sum.bins.reserve(most), sum.positives.reserve(most), sum.negatives.reserve(most);
  size_t mine = 0;
  for (size_t added = 0; added < from.bins.size(); ++added) {
    while (mine < into->bins.size() && into->bins[mine] < from.bins[added]) {
      Append(&sum, *into, mine++);
    }
    Append(&sum, from, added);
    if (mine == into->bins.size() || into->bins[mine] != from.bins[added]) continue;
    sum.positives.back() += into->positives[mine];
    sum.negatives.back() += into->negatives[mine];
    ++mine;
  }
  while (mine < into->bins.size()) Append(&sum, *into, mine++);
  *into = std::move(sum);
}

}  // namespace

std::optional<std::string> AucHistogram::Wrong() const {
  if (positives.size() != bins.size() || negatives.size() != bins.size()) {
    return fmt::format("{} bins, {} positives and {} negatives differ in length", bins.size(),
                       positives.size(), negatives.size());
  }
  for (size_t i = 0; i < bins.size(); ++i) {
    if (bins[i] >= kBins) {
      return fmt::format("bin {} is not a known one (0 to {})", bins[i], kBins - 1);
    }
    if (i > 0 && bins[i] <= bins[i - 1]) {
      return fmt::format("bin {} comes after bin {}; they must ascend", bins[i], bins[i - 1]);
    }
  }
  return std::nullopt;
}

void AddScore(AucHistogram* histogram, double score, bool positive) {
  const double clamped = std::isnan(score) ? 0.0 : std::clamp(score, 0.0, 1.0);
  const auto bin =
      std::min(static_cast<uint32_t>(clamped * AucHistogram::kBins), AucHistogram::kBins - 1);
  const size_t place = PlaceOf(histogram, bin);
  ++(positive ? histogram->positives : histogram->negatives)[place];
}

void Merge(ShardMetrics* into, const ShardMetrics& from) {
  into->records += from.records;
  into->rejected_records += from.rejected_records;
  into->minibatches_again += from.minibatches_again;
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
             histogram.bins.size() * AucHistogram::kBinBytes;
  }
  return bytes;
}

double Auc(const AucHistogram& histogram) {
  double positives = 0;
  double negatives = 0;
  double ranked_above = 0;  // pairs in which the positive scores higher; a tie is half a pair
  for (size_t i = 0; i < histogram.bins.size(); ++i) {
    const auto positive = static_cast<double>(histogram.positives[i]);
    const auto negative = static_cast<double>(histogram.negatives[i]);
    ranked_above += positive * (negatives + negative / 2);
    positives += positive;
    negatives += negative;
  }
  if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
  return ranked_above / (positives * negatives);
}

std::optional<double> MetricOf(const ShardMetrics& metrics, const std::string& name) {
  if (const auto auc = metrics.aucs.find(name); auc != metrics.aucs.end()) return Auc(auc->second);
  const auto mean = metrics.means.find(name);
  if (mean == metrics.means.end() || mean->second.weight == 0) return std::nullopt;
  return mean->second.sum / mean->second.weight;
}

}  // namespace muster
