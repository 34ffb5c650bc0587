#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "admin/admin_client.h"
#include "cli/state/job_target.h"

namespace muster {

/// Answers the questions of AdminClient from the state directory of a job that does not run
/// (JobArchive); orders are refused with FailedPrecondition. Nothing in the directory is changed.
/// NotFound if no run there has made a journal.
absl::StatusOr<std::unique_ptr<AdminClient>> OpenStoredJob(const JobTarget& target);

}  // namespace muster
