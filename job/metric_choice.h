#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "job/job_spec.h"

namespace muster {

/// A metric of an evaluate dataset of the job.
struct MetricChoice {
  /// The position in JobSpec::datasets.
  size_t dataset = 0;
  std::string metric;
};

/// Parses `text` of the job file: METRIC, or DATASET/METRIC if the job has several evaluate
/// datasets. kInvalidArgument if it is not clear which dataset is meant. Pure.
absl::StatusOr<MetricChoice> ChooseMetric(const JobSpec& job, const std::string& text);

}  // namespace muster
