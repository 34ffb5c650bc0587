#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "job/job_spec.h"
#include "master/core/streams/stream_look.h"

namespace muster {

/// One look at a growing source of the job. The job's master will look at it in the same way.
struct SourceLook {
  std::string dataset;
  StreamLook look;
};

/// Looks once at every growing source. It waits for its brokers, at most some seconds for each
/// source. Errors are those of the settings.
absl::StatusOr<std::vector<SourceLook>> LookAtSources(const JobSpec& job);

/// What the looks say about a run that begins now. Pure.
struct SourceFindings {
  /// Reasons why the run would wait for ever, or fail. Empty if there are none.
  std::vector<std::string> errors;
  /// What the user should know: brokers that could not be asked, and records that the job will wait
  /// for.
  std::vector<std::string> notes;
};
SourceFindings JudgeLooks(const std::vector<SourceLook>& looks);

/// A line for each topic whose end is a time after `now`. No look can find such an end yet, so the
/// job will wait for it. Pure.
std::vector<std::string> EndsAhead(const JobSpec& job, WallTime now);

}  // namespace muster
