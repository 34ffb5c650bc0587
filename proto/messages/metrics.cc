#include "proto/messages/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

namespace muster {
namespace {

constexpr std::string_view kAveragePrecisionSuffix = ".average_precision";
constexpr std::string_view kCalibrationSuffix = ".calibration";

/// The place of `bin` in the lists; adds it if it is missing.
size_t PlaceOf(ScoreHistogram* histogram, uint32_t bin) {
  std::vector<uint32_t>& bins = histogram->bins;
  if (bins.size() == ScoreHistogram::kBins) return bin;
  const auto it = std::lower_bound(bins.begin(), bins.end(), bin);
  const auto place = it - bins.begin();
  if (it == bins.end() || *it != bin) {
    bins.insert(it, bin);
    histogram->positives.insert(histogram->positives.begin() + place, 0);
    histogram->negatives.insert(histogram->negatives.begin() + place, 0);
  }
  return static_cast<size_t>(place);
}

void Append(ScoreHistogram* to, const ScoreHistogram& from, size_t place) {
  to->bins.push_back(from.bins[place]);
  to->positives.push_back(from.positives[place]);
  to->negatives.push_back(from.negatives[place]);
}

constexpr int kOctaves = 32;  // of probabilities below one half
constexpr int kBinsOfOctave = ScoreHistogram::kBins / 2 / kOctaves;

/// The bin of `p`, whose rest is `rest` = 1 - p. Both are given, because near 1 only the rest has
/// digits that tell probabilities apart.
uint32_t BinOf(double p, double rest) {
  // `small` is mantissa * 2^exponent, with the mantissa in [0.5, 1), and 0.5 itself is 0.5 * 2^0.
  int exponent = 0;
  const double mantissa = std::frexp(std::min(p, rest), &exponent);
  const double step = std::floor((2 * mantissa - 1) * kBinsOfOctave);
  const double bin = (kOctaves + exponent) * kBinsOfOctave + step;
  // What lies below the lowest octave is in bin 0. One half is the first bin of the upper half.
  constexpr double kLast = ScoreHistogram::kBins / 2 - 1;
  const auto low = static_cast<uint32_t>(mantissa == 0 ? 0 : std::clamp(bin, 0.0, kLast));
  return p < rest ? low : ScoreHistogram::kBins - 1 - low;
}

void AddProbability(ScoreHistogram* histogram, double p, double rest, bool positive) {
  histogram->by_octave = true;
  const size_t place = PlaceOf(histogram, BinOf(p, rest));
  ++(positive ? histogram->positives : histogram->negatives)[place];
  histogram->predicted += p;
}

/// The same counts by octaves, each former bin at its middle.
ScoreHistogram ByOctave(const ScoreHistogram& equal) {
  ScoreHistogram result;
  result.by_octave = true;
  for (size_t i = 0; i < equal.bins.size(); ++i) {
    const double p = (equal.bins[i] + 0.5) / ScoreHistogram::kBins;
    const size_t place = PlaceOf(&result, BinOf(p, 1 - p));
    result.positives[place] += equal.positives[i];
    result.negatives[place] += equal.negatives[i];
    result.predicted += p * static_cast<double>(equal.positives[i] + equal.negatives[i]);
  }
  return result;
}

void Add(ScoreHistogram* into, const ScoreHistogram& added) {
  if (!into->by_octave) *into = ByOctave(*into);
  const ScoreHistogram converted = added.by_octave ? ScoreHistogram() : ByOctave(added);
  const ScoreHistogram& from = added.by_octave ? added : converted;
  ScoreHistogram sum{.by_octave = true, .predicted = into->predicted + from.predicted};
  const size_t most = into->bins.size() + from.bins.size();
  sum.bins.reserve(most), sum.positives.reserve(most), sum.negatives.reserve(most);
  size_t mine = 0;
  for (size_t other = 0; other < from.bins.size(); ++other) {
    while (mine < into->bins.size() && into->bins[mine] < from.bins[other]) {
      Append(&sum, *into, mine++);
    }
    Append(&sum, from, other);
    if (mine == into->bins.size() || into->bins[mine] != from.bins[other]) continue;
    sum.positives.back() += into->positives[mine];
    sum.negatives.back() += into->negatives[mine];
    ++mine;
  }
  while (mine < into->bins.size()) Append(&sum, *into, mine++);
  *into = std::move(sum);
}

}  // namespace

std::optional<std::string> ScoreHistogram::Wrong() const {
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

void AddScore(ScoreHistogram* histogram, float probability, bool positive) {
  AddProbability(histogram, probability, 1.0 - probability, positive);
}

void AddLogit(ScoreHistogram* histogram, float logit, bool positive) {
  AddProbability(histogram, 1 / (1 + std::exp(-double{logit})), 1 / (1 + std::exp(double{logit})),
                 positive);
}

void Merge(ShardMetrics* into, const ShardMetrics& from) {
  into->records += from.records;
  into->rejected_records += from.rejected_records;
  into->minibatches_again += from.minibatches_again;
  into->records_later = std::max(into->records_later, from.records_later);
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
             histogram.bins.size() * ScoreHistogram::kBinBytes;
  }
  return bytes;
}

double Auc(const ScoreHistogram& histogram) {
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

double AveragePrecision(const ScoreHistogram& histogram) {
  double positives = 0;
  double records = 0;
  double sum = 0;  // of the precision at each positive
  for (size_t i = histogram.bins.size(); i-- > 0;) {
    const auto positive = static_cast<double>(histogram.positives[i]);
    positives += positive;
    records += positive + static_cast<double>(histogram.negatives[i]);
    sum += positive * positives / records;
  }
  return positives == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / positives;
}

double Calibration(const ScoreHistogram& histogram) {
  uint64_t positives = 0;
  for (const uint64_t count : histogram.positives) positives += count;
  return positives == 0 ? std::numeric_limits<double>::quiet_NaN()
                        : histogram.predicted / static_cast<double>(positives);
}

std::map<std::string, double> ValuesOf(const ShardMetrics& metrics) {
  std::map<std::string, double> values;
  for (const auto& [name, mean] : metrics.means) {
    if (mean.weight != 0) values.emplace(name, mean.sum / mean.weight);
  }
  for (const auto& [name, histogram] : metrics.aucs) values.emplace(name, Auc(histogram));
  for (const auto& [name, histogram] : metrics.aucs) {
    values.emplace(name + std::string(kAveragePrecisionSuffix), AveragePrecision(histogram));
    values.emplace(name + std::string(kCalibrationSuffix), Calibration(histogram));
  }
  return values;
}

std::optional<double> MetricOf(const ShardMetrics& metrics, const std::string& name) {
  const auto mean = metrics.means.find(name);
  if (mean != metrics.means.end() && mean->second.weight != 0) {
    return mean->second.sum / mean->second.weight;
  }
  const auto auc = metrics.aucs.find(name);
  if (auc != metrics.aucs.end()) return Auc(auc->second);
  const auto end_of_name = name.rfind('.');
  if (end_of_name == std::string::npos) return std::nullopt;
  const auto of = metrics.aucs.find(name.substr(0, end_of_name));
  if (of == metrics.aucs.end()) return std::nullopt;
  const std::string_view what = std::string_view(name).substr(end_of_name);
  if (what == kAveragePrecisionSuffix) return AveragePrecision(of->second);
  if (what == kCalibrationSuffix) return Calibration(of->second);
  return std::nullopt;
}

}  // namespace muster
