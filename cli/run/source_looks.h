#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "job/job_spec.h"
#include "master/core/streams/stream_look.h"

namespace muster {

/// One look at a source of the job that grows, as its master will look at it.
struct SourceLook {
  std::string dataset;
  StreamLook look;
};

/// Looks once at every source that grows. Waits for its brokers, for each of them some seconds at
/// most. Errors: those of the settings.
absl::StatusOr<std::vector<SourceLook>> LookAtSources(const JobSpec& job);

/// What the looks say about a run that would begin now. Pure.
struct SourceFindings {
  /// What would make the run wait without end, or fail. Empty: nothing was found.
  std::vector<std::string> errors;
  /// What is worth knowing: brokers that could not be asked, records that the job will wait for.
  std::vector<std::string> notes;
};
SourceFindings JudgeLooks(const std::vector<SourceLook>& looks);

/// A line for each topic whose end is a time after `now`: no look can find that end yet, and the
/// job waits for it. Pure.
std::vector<std::string> EndsAhead(const JobSpec& job, WallTime now);

}  // namespace muster
