#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "admin/admin_client.h"
#include "cli/state/job_target.h"

namespace muster {

/// Answers the questions of AdminClient from the state directory of a job that does not run
/// (JobArchive). It refuses orders with FailedPrecondition, and changes nothing in the directory.
/// NotFound if no run there has made a journal.
absl::StatusOr<std::unique_ptr<AdminClient>> OpenStoredJob(const JobTarget& target);

}  // namespace muster
