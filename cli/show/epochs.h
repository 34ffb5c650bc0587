#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/status/dataset_status.h"
#include "proto/status/job_status.h"
#include "proto/status/metric_trend.h"

/// Shows epochs and their metrics to people: the newest epochs one by one, and the others together.
/// Pure.
namespace muster {

enum class EpochsShown : uint8_t { kNewest, kAll };

/// One epoch, or several consecutive ones. For several, records and shards are sums, and there are
/// no metrics. Numbers begin at 0, and `last` is included.
struct EpochGroup {
  uint32_t first = 0;
  uint32_t last = 0;
  EpochStatus sum;
  bool single() const { return first == last; }
};

/// How many of the newest epochs that have begun are shown one by one.
inline constexpr size_t kNewestEpochs = 3;
/// If a dataset has no more epochs than this, all are shown one by one.
inline constexpr size_t kFewEpochs = 6;

/// The listed epochs in their order. The first group of several has the records of epochs that are
/// done and not listed, too.
std::vector<EpochGroup> GroupsOf(const DatasetStatus& dataset, EpochsShown shown);
/// The sum of all epochs of the dataset. Epochs that are not listed add only records.
EpochGroup SumOf(const DatasetStatus& dataset);

/// The numbers of the epochs, from 1: "3", "1-247".
std::string NumberText(const EpochGroup& group);

/// "0.816", or "undefined".
std::string MetricText(double value);
/// "auc 0.711" and, if there are other epochs, "before 0.712, best 0.816 in epoch 3". If the newest
/// value is the best, it says "best so far".
std::string LatestText(const MetricTrend& trend);
std::string EarlierText(const MetricTrend& trend);
/// "80", or "80 so far" if the epoch is not over.
std::string EpochText(const MetricTrend& trend);
/// A line that says which epochs' weights are kept. Empty if none are.
std::string KeptText(const std::vector<KeptEpoch>& kept);

/// A line about one dataset: "epoch 80: auc 0.711 (before 0.712, best 0.816 in epoch 3), loss
/// 0.92". It fits into `columns` (0: any number). Empty if the dataset has no metrics yet. Four
/// metrics are shown, and the others are counted.
std::string TrendLine(const std::vector<MetricTrend>& trends, const std::string& dataset,
                      const std::string& prefix, size_t columns);

}  // namespace muster
