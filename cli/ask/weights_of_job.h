#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/state/job_target.h"
#include "proto/admin.pb.h"
#include "proto/status/job_status.h"

/// The weights of one job as the beginning of another.
namespace muster {

/// The job that `weights` names, by its job file or its state directory. None if it is neither:
/// then it is an export, or what will be one.
std::optional<JobTarget> JobOfWeights(const std::string& weights);

/// Of which job and position an export of this manifest is, for people. `status` is from before the
/// manifest: all that it calls COMMITTED is in the export. Pure.
std::string PositionText(const JobStatus& status, const v1::GetManifestResponse& manifest);

/// Exports the newest weights of the job to `folder`, whose parent exists, and returns their
/// PositionText. If an earlier call has done so, nothing is written, and the position is the
/// earlier one: a job that continues begins with the same weights. The job may have ended; NotFound
/// if there was none. Starts threads that stay. Not thread-safe.
absl::StatusOr<std::string> TakeWeights(const JobTarget& job, const std::string& folder);

}  // namespace muster
