#include "cli/show/epochs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "cli/show/fit.h"

namespace muster {
namespace {

constexpr size_t kMetricsOfLine = 4;
constexpr uint32_t kFirstToGo = 2 * kMetricsOfLine;

bool HasBegun(const EpochStatus& epoch) {
  const ShardCounts& shards = epoch.shards;
  return epoch.records_done + shards.leased + shards.done + shards.committed + shards.failed > 0;
}

void Add(const EpochStatus& epoch, EpochStatus* sum) {
  sum->records_expected += epoch.records_expected;
  sum->records_done += epoch.records_done;
  sum->records_committed += epoch.records_committed;
  sum->rejected_records += epoch.rejected_records;
  if (sum->reject_samples.empty()) sum->reject_samples = epoch.reject_samples;
  for (const auto member : {&ShardCounts::total, &ShardCounts::todo, &ShardCounts::leased,
                            &ShardCounts::done, &ShardCounts::committed, &ShardCounts::failed}) {
    sum->shards.*member += epoch.shards.*member;
  }
}

EpochGroup Together(const DatasetStatus& dataset, size_t begin, size_t end) {
  EpochGroup group{.first = dataset.epochs[begin].epoch, .last = dataset.epochs[end - 1].epoch};
  if (end - begin == 1) {
    group.sum = dataset.epochs[begin];
    return group;
  }
  for (size_t i = begin; i < end; ++i) Add(dataset.epochs[i], &group.sum);
  if (begin == 0 && HasBegun(dataset.epochs[0])) {
    // What is done of epochs that are not listed: they are older than the newest ones.
    group.first = 0;
    group.sum.records_expected += dataset.omitted_records_done;
    group.sum.records_done += dataset.omitted_records_done;
    group.sum.records_committed += dataset.omitted_records_committed;
  }
  return group;
}

}  // namespace

std::vector<EpochGroup> GroupsOf(const DatasetStatus& dataset, EpochsShown shown) {
  const size_t all = dataset.epochs.size();
  size_t begin = 0;
  size_t end = all;
  if (shown == EpochsShown::kNewest && all > kFewEpochs) {
    end = 1;
    for (size_t i = 0; i < all; ++i) {
      if (HasBegun(dataset.epochs[i])) end = i + 1;
    }
    begin = end - std::min(end, kNewestEpochs);
  }
  std::vector<EpochGroup> groups;
  if (begin > 0) groups.push_back(Together(dataset, 0, begin));
  for (size_t i = begin; i < end; ++i) groups.push_back(Together(dataset, i, i + 1));
  if (end < all) groups.push_back(Together(dataset, end, all));
  return groups;
}

EpochGroup SumOf(const DatasetStatus& dataset) {
  EpochGroup group{.last = std::max(1u, dataset.epochs_total) - 1};
  for (const EpochStatus& epoch : dataset.epochs) Add(epoch, &group.sum);
  group.sum.records_expected += dataset.omitted_records_expected;
  group.sum.records_done += dataset.omitted_records_done;
  group.sum.records_committed += dataset.omitted_records_committed;
  return group;
}

std::string NumberText(const EpochGroup& group) {
  return group.single() ? fmt::format("{}", group.first + 1)
                        : fmt::format("{}-{}", group.first + 1, group.last + 1);
}

std::string MetricText(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : "undefined";
}

std::string LatestText(const MetricTrend& trend) {
  return fmt::format("{} {}", Printable(trend.metric), MetricText(trend.latest));
}

std::string EarlierText(const MetricTrend& trend) {
  std::string text;
  if (trend.previous) text = "before " + MetricText(*trend.previous);
  // The first epoch has no other epoch to compare with.
  if (!trend.best || (trend.best_epoch == trend.epoch && !trend.previous)) return text;
  if (!text.empty()) text += ", ";
  if (trend.best_epoch == trend.epoch) return text + "best so far";
  return text + fmt::format("best {} in epoch {}", MetricText(*trend.best), trend.best_epoch + 1);
}

std::string EpochText(const MetricTrend& trend) {
  return fmt::format("{}{}", trend.epoch + 1, trend.epoch_over ? "" : " so far");
}

std::string KeptText(const std::vector<KeptEpoch>& kept) {
  std::string text;
  for (const KeptEpoch& one : kept) {
    text += fmt::format("{}{}", text.empty() ? "weights kept of epoch " : ", ", one.epoch + 1);
    if (one.best)
      text += one.value ? fmt::format(" (best: {})", MetricText(*one.value)) : " (best)";
  }
  return text.empty() ? text : text + "\n";
}

std::string TrendLine(const std::vector<MetricTrend>& trends, const std::string& dataset,
                      const std::string& prefix, size_t columns) {
  std::vector<LineField> fields;
  size_t metrics = 0;
  for (const MetricTrend& trend : trends) {
    if (trend.dataset != dataset) continue;
    if (++metrics > kMetricsOfLine) continue;
    const auto rank = static_cast<uint32_t>(2 * metrics - 2);
    const std::string before =
        metrics == 1 ? fmt::format("{}epoch {}: ", prefix, EpochText(trend)) : ", ";
    fields.push_back({before + LatestText(trend), rank});
    const std::string earlier = EarlierText(trend);
    if (!earlier.empty()) fields.push_back({fmt::format(" ({})", earlier), rank + 1});
  }
  if (metrics > kMetricsOfLine) {
    fields.push_back({fmt::format(", {} more", metrics - kMetricsOfLine), kFirstToGo});
  }
  return fields.empty() ? "" : FitLine(std::move(fields), columns);
}

}  // namespace muster
