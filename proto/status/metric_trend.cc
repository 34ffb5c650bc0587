#include "proto/status/metric_trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

constexpr double kClearly = 0.01;

constexpr std::array<std::string_view, 12> kHigherWords = {
    "auc",    "auroc", "auprc", "accuracy", "acc",  "precision",
    "recall", "f1",    "ndcg",  "mrr",      "hits", "hit"};
constexpr std::array<std::string_view, 6> kLowerWords = {"rmse", "mse",        "mae",
                                                         "mape", "perplexity", "logloss"};

char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The words of a name in small letters; "at" stands for @, too.
std::vector<std::string> WordsIn(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char raw : name) {
    const char c = ToLower(raw);
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      words.back().push_back(c);
      continue;
    }
    if (!words.back().empty()) words.emplace_back();
    if (c == '@') words.back() = "at", words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// Every shard of the epoch is committed, or will never be.
bool IsOver(const EpochStatus& epoch) {
  const ShardCounts& shards = epoch.shards;
  if (shards.total == 0) return epoch.records_committed >= epoch.records_expected;
  return shards.committed + shards.failed >= shards.total;
}

double ValueIn(const EpochStatus& epoch, const std::string& metric) {
  const auto found = epoch.metrics.find(metric);
  return found == epoch.metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

bool IsBetter(Better better, double value, double than) {
  return better == Better::kHigher ? value > than : value < than;
}

std::string_view WordOf(Better better) {
  if (better == Better::kUnknown) return "unknown";
  return better == Better::kHigher ? "higher" : "lower";
}

/// The epochs that are over and have the metric, oldest first, and the best of them.
struct Course {
  std::vector<std::pair<uint32_t, double>> values;  // epoch, value
  size_t best = 0;
};

/// Its metrics are not of the weights that they seem to be of.
bool IsNoneToCompare(const EpochStatus& epoch, bool overlaps) {
  return epoch.minibatches_again > 0 || (epoch.records_later > 0 && !overlaps);
}

Course CourseOf(std::span<const EpochStatus> epochs, const std::string& metric, Better better,
                bool overlaps) {
  Course course;
  for (const EpochStatus& epoch : epochs) {
    const double value = ValueIn(epoch, metric);
    if (epoch.records_committed == 0 || !IsOver(epoch) || !std::isfinite(value)) continue;
    if (IsNoneToCompare(epoch, overlaps)) continue;
    course.values.emplace_back(epoch.epoch, value);
    if (IsBetter(better, value, course.values[course.best].second)) {
      course.best = course.values.size() - 1;
    }
  }
  return course;
}

void AddPrevious(const Course& course, MetricTrend* trend) {
  for (const auto& [epoch, value] : course.values) {
    if (epoch < trend->epoch) trend->previous = value;
  }
}

void AddBest(const Course& course, Better better, MetricTrend* trend) {
  if (better == Better::kUnknown || course.values.empty()) return;
  const auto [best_epoch, best] = course.values[course.best];
  trend->best = best;
  trend->best_epoch = best_epoch;
  const double first = course.values.front().second;
  for (size_t i = course.values.size(); i-- > course.best;) {
    if (!IsClearlyWorse(better, first, best, course.values[i].second)) break;
    ++trend->worse_epochs;
  }
  const bool evaluates = trend->mode == ToString(DatasetMode::kEvaluate);
  if (!evaluates || trend->worse_epochs < kWorseEpochsOfRemark) return;
  trend->remark = fmt::format(
      "{} {} is {:.4g}; its best was {:.4g} after epoch {}. The last {} epochs were clearly worse: "
      "the model may be overfitting",
      trend->dataset, trend->metric, course.values.back().second, best, best_epoch + 1,
      trend->worse_epochs);
}

/// Why the newest value is none to compare.
std::string AgainRemark(const EpochStatus& epoch, const MetricTrend& trend) {
  return fmt::format(
      "{} {} of epoch {} is too good, and not compared: {} ran again after a process died, and "
      "{} judged by weights that had seen {}",
      trend.dataset, trend.metric, epoch.epoch + 1,
      CountText(epoch.minibatches_again, "minibatch", "minibatches"),
      epoch.minibatches_again == 1 ? "was" : "were", epoch.minibatches_again == 1 ? "it" : "them");
}

std::string LaterRemark(const EpochStatus& epoch, bool overlaps, const MetricTrend& trend) {
  const std::string seen = CountText(epoch.records_later, "record");
  if (overlaps) {
    return fmt::format("{} {} of epoch {} was measured while up to {} of later epochs were trained",
                       trend.dataset, trend.metric, epoch.epoch + 1, seen);
  }
  return fmt::format(
      "{} {} of epoch {} is not compared: it was measured again after a process died, by weights "
      "that may have seen {} of later epochs",
      trend.dataset, trend.metric, epoch.epoch + 1, seen);
}

}  // namespace

Better BetterOf(std::string_view metric) {
  const std::vector<std::string> words = WordsIn(metric);
  const auto any_of = [&words](std::span<const std::string_view> known) {
    return std::ranges::any_of(words, [known](const std::string& word) {
      return std::ranges::find(known, word) != known.end();
    });
  };
  // Best is 1, and not higher or lower.
  if (std::ranges::find(words, "calibration") != words.end()) return Better::kUnknown;
  const bool loss = std::ranges::any_of(words, [](const std::string& word) {
    return word.ends_with("loss") || word.find("error") != std::string::npos;
  });
  if (loss || any_of(kLowerWords)) return Better::kLower;
  bool at_k = false;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    at_k = at_k || (words[i] == "at" && (words[i + 1] == "k" || IsDigits(words[i + 1])));
  }
  return at_k || any_of(kHigherWords) ? Better::kHigher : Better::kUnknown;
}

bool IsClearlyWorse(Better better, double first, double best, double value) {
  if (better == Better::kUnknown) return false;
  const double margin = kClearly * (std::abs(best) + std::abs(best - first));
  return (better == Better::kHigher ? best - value : value - best) > margin;
}

const EpochStatus* LastCommittedEpoch(const DatasetStatus& dataset) {
  const EpochStatus* last = nullptr;
  for (const EpochStatus& epoch : dataset.epochs) {
    if (epoch.records_committed > 0) last = &epoch;
  }
  return last;
}

std::vector<MetricTrend> TrendsOf(const std::vector<DatasetStatus>& datasets) {
  std::vector<MetricTrend> trends;
  for (const DatasetStatus& dataset : datasets) {
    const EpochStatus* last = LastCommittedEpoch(dataset);
    if (last == nullptr) continue;
    const auto known =
        std::span(dataset.epochs).first(static_cast<size_t>(last - dataset.epochs.data()) + 1);
    for (const auto& [metric, latest] : last->metrics) {
      if (trends.size() == kMetricTrendsMax) return trends;
      const Better better = BetterOf(metric);
      MetricTrend trend{.dataset = dataset.name,
                        .mode = dataset.mode,
                        .metric = metric,
                        .epoch = last->epoch,
                        .latest = latest,
                        .epoch_over = IsOver(*last),
                        .better = std::string(WordOf(better))};
      const Course course = CourseOf(known, metric, better, dataset.overlaps);
      AddPrevious(course, &trend);
      AddBest(course, better, &trend);
      if (last->records_later > 0) trend.remark = LaterRemark(*last, dataset.overlaps, trend);
      if (last->minibatches_again > 0) trend.remark = AgainRemark(*last, trend);
      trends.push_back(std::move(trend));
    }
  }
  return trends;
}

}  // namespace muster
