#pragma once

#include <memory>

#include "job/job_spec.h"
#include "master/sources/dataset_source.h"

namespace muster {

/// The source of a dataset of the job, not open yet. `dataset` is the position in
/// JobSpec::datasets.
std::unique_ptr<DatasetSource> MakeSource(const JobSpec& job, DatasetId dataset);

}  // namespace muster
