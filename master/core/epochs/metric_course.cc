#include "master/core/epochs/metric_course.h"

#include <cmath>

#include "base/check.h"

namespace muster {

std::optional<double> FiniteMetric(const ShardMetrics& metrics, const std::string& name) {
  const std::optional<double> value = MetricOf(metrics, name);
  return value.has_value() && std::isfinite(*value) ? value : std::nullopt;
}

void RunningCourse::Take(const EpochTotals& totals, EpochIndex epoch) {
  const auto metrics = totals.Metrics(metric_.dataset, epoch);
  if (metrics == nullptr) return;
  ++values_read_;
  const std::optional<double> value = FiniteMetric(*metrics, metric_.name);
  if (!value.has_value()) return;
  const bool gains = metric_.better == Better::kHigher ? *value > course_.best + min_delta_
                                                       : *value < course_.best - min_delta_;
  if (gains || !course_.best_epoch.has_value()) course_ = {epoch, *value, 0};
}

const MetricCourse& RunningCourse::Read(const EpochTotals& totals, const ShardQueue& queue,
                                        uint32_t ended, uint32_t first) {
  MUSTER_CHECK(ended >= ended_);
  if (final_) {
    for (; ended_ < ended; ++ended_) Take(totals, EpochIndex(ended_));
  } else {
    course_ = {};
    for (const EpochIndex epoch : totals.KnownEpochs(metric_.dataset)) {
      if (epoch.value() >= first && epoch.value() < ended) Take(totals, epoch);
    }
    ended_ = ended;
  }
  course_.without_gain = course_.best_epoch ? ended - course_.best_epoch->value() - 1 : ended;
  const auto& whole = queue.WholeEpochs(metric_.dataset).intervals();
  const auto begin = whole.find(0);
  final_ = begin != whole.end() && begin->second >= ended;
  return course_;
}

}  // namespace muster
