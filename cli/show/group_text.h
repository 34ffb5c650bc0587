#pragma once

#include <cstddef>
#include <string>

#include "proto/status/job_status.h"

namespace muster {

/// The synchronous group of a job: its step, why the next one waits, and a table of its processes,
/// fitted to `columns` (cli/show/fit.h); 0: not fitted. Empty if the job has no group. Pure.
std::string GroupText(const JobStatus& status, size_t columns);

}  // namespace muster
