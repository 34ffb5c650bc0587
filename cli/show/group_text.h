#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "proto/status/job_status.h"

namespace muster {

/// The synchronous group of a job: its step, why the next one waits, and a table of its processes,
/// fitted to `columns` (cli/show/fit.h); 0: not fitted. Empty if the job has no group. Pure.
std::string GroupText(const JobStatus& status, size_t columns);

/// The same in one line, without a line's end: step, members, steps a minute, and what the next
/// step waits for, or whom the step in work awaits. Empty if the job has no group, or is over.
/// `records_per_second`: as the reader knows it. Pure.
std::string GroupInOneLine(const JobSummary& job, std::optional<double> records_per_second,
                           size_t columns);

}  // namespace muster
