#pragma once

#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "master/core/core_options.h"

namespace muster {

/// What the job's spec.training.keep and stopEarly mean for the core. kInvalidArgument names the
/// field if its metric is of no evaluate dataset, or if its name does not say which values are
/// better. Pure.
absl::StatusOr<EpochEndOptions> EpochEndOptionsOf(const JobSpec& job);

}  // namespace muster
