#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "proto/status/job_status.h"

namespace muster {

/// Text about the synchronous group of a job: its step, why the next one waits, and a table of its
/// processes. It fits into `columns` (cli/show/fit.h; 0: not fitted). Empty if the job has no
/// group. Pure.
std::string GroupText(const JobStatus& status, size_t columns);

/// The same in one line, without a line break: step, members, steps per minute, and what the next
/// step waits for or which members the present step waits for. Empty if the job has no group or is
/// over. `records_per_second` is the rate that the caller knows. Pure.
std::string GroupInOneLine(const JobSummary& job, std::optional<double> records_per_second,
                           size_t columns);

}  // namespace muster
