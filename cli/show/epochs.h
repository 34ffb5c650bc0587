#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/status/dataset_status.h"
#include "proto/status/job_status.h"
#include "proto/status/metric_trend.h"

/// Epochs and their metrics for people: the newest epochs one by one, the others together. Pure.
namespace muster {

enum class EpochsShown : uint8_t { kNewest, kAll };

/// One epoch, or several in a row: then records and shards are their sums, and there are no
/// metrics. Numbers from 0, `last` included.
struct EpochGroup {
  uint32_t first = 0;
  uint32_t last = 0;
  EpochStatus sum;
  bool single() const { return first == last; }
};

/// So many that have begun are shown one by one.
inline constexpr size_t kNewestEpochs = 3;
/// A dataset with at most so many is shown whole.
inline constexpr size_t kFewEpochs = 6;

/// The listed epochs in their order.
std::vector<EpochGroup> GroupsOf(const DatasetStatus& dataset, EpochsShown shown);
/// All epochs of the dataset, those that are not listed included: theirs are records alone.
EpochGroup SumOf(const DatasetStatus& dataset);

/// "3", "1-247": from 1.
std::string NumberText(const EpochGroup& group);

/// "0.816"; "undefined".
std::string MetricText(double value);
/// "auc 0.711", and "before 0.712, best 0.816 in epoch 3" as far as there is something to say;
/// "best so far" where the newest value is the best.
std::string LatestText(const MetricTrend& trend);
std::string EarlierText(const MetricTrend& trend);
/// "80", or "80 so far" of one that is not over.
std::string EpochText(const MetricTrend& trend);
/// Whose weights are kept, a line; empty: none.
std::string KeptText(const std::vector<KeptEpoch>& kept);

/// Of one dataset, "epoch 80: auc 0.711 (before 0.712, best 0.816 in epoch 3), loss 0.92" in
/// `columns` (0: any number); empty when it has no metrics yet. Beyond four metrics the others are
/// counted.
std::string TrendLine(const std::vector<MetricTrend>& trends, const std::string& dataset,
                      const std::string& prefix, size_t columns);

}  // namespace muster
