#include "master/service/epoch_end_options.h"

#include <fmt/format.h>

#include <string>

#include "base/status.h"
#include "job/metric_choice.h"
#include "proto/status/metric_trend.h"

namespace muster {
namespace {

absl::StatusOr<DecidingMetric> DecidingMetricOf(const JobSpec& job, const std::string& field,
                                                const std::string& text) {
  absl::StatusOr<MetricChoice> choice = ChooseMetric(job, text);
  if (!choice.ok()) return Annotate(choice.status(), field);
  const Better better = BetterOf(choice->metric);
  if (better == Better::kUnknown) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: the name of the metric '{}' does not say if higher or lower values are better. Report "
        "it under a name such as auc, accuracy, loss or error",
        field, choice->metric));
  }
  return DecidingMetric{DatasetId(static_cast<uint32_t>(choice->dataset)), choice->metric, better};
}

}  // namespace

absl::StatusOr<EpochEndOptions> EpochEndOptionsOf(const JobSpec& job) {
  const JobSpec::Training& training = job.training;
  EpochEndOptions options;
  options.keep_every = training.keep_every;
  options.keep_last = training.keep_last;
  if (!training.keep_best.empty()) {
    MUSTER_ASSIGN_OR_RETURN(options.keep_best,
                            DecidingMetricOf(job, "spec.training.keep.best", training.keep_best));
  }
  if (!training.stop_early_metric.empty()) {
    MUSTER_ASSIGN_OR_RETURN(
        DecidingMetric metric,
        DecidingMetricOf(job, "spec.training.stopEarly.metric", training.stop_early_metric));
    options.stop_early = EpochEndOptions::StopEarly{std::move(metric), training.stop_early_patience,
                                                    training.stop_early_min_delta};
  }
  return options;
}

}  // namespace muster
