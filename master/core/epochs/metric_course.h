#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "master/core/core_options.h"
#include "master/core/epochs/epoch_totals.h"
#include "sharding/shard_queue.h"

namespace muster {

/// How a metric went over the epochs that have ended.
struct MetricCourse {
  /// The first epoch that had the best value; none: no epoch has a value.
  std::optional<EpochIndex> best_epoch;
  double best = 0;
  /// How many of the newest epochs, in a row, were not better.
  uint32_t without_gain = 0;
  friend bool operator==(const MetricCourse&, const MetricCourse&) = default;
};

/// None: the metric is not defined, or not finite.
std::optional<double> FiniteMetric(const ShardMetrics& metrics, const std::string& name);

/// The course of one metric. The end of an epoch adds the value of this epoch, however many were
/// before it, because a value may come from a histogram with thousands of bins. All known epochs
/// are read at first, and as long as the metrics of one that has ended may change: it has FAILED
/// shards, which may be tried again. Pure; not thread-safe.
class RunningCourse {
 public:
  /// Better by no more than `min_delta` does not count.
  RunningCourse(DecidingMetric metric, double min_delta)
      : metric_(std::move(metric)), min_delta_(min_delta) {}

  /// Of the epochs before `ended`, which may not become less. Epochs that are not known, or whose
  /// metric is not defined, were not better. If all epochs are read, those before `first` are left
  /// out.
  const MetricCourse& Read(const EpochTotals& totals, const ShardQueue& queue, uint32_t ended,
                           uint32_t first = 0);
  /// How many values it has read.
  uint64_t values_read() const { return values_read_; }

 private:
  void Take(const EpochTotals& totals, EpochIndex epoch);

  DecidingMetric metric_;
  double min_delta_;
  MetricCourse course_;
  /// Epochs before this are in it.
  uint32_t ended_ = 0;
  /// The metrics of these cannot change any more.
  bool final_ = false;
  uint64_t values_read_ = 0;
};

}  // namespace muster
