#pragma once

#include <string>

#include "cli/state/job_source.h"

namespace muster::metrics {

struct TensorboardOptions {
  QueryOptions query;
  std::string log_directory;
  bool follow = false;  // until the run is over
};
/// `muster tensorboard`: writes the metrics of a job as event files. It also works without a
/// running job. Returns the exit code of the process.
int TensorboardCommand(const TensorboardOptions& options);

}  // namespace muster::metrics
