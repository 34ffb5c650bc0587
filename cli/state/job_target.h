#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/state/cluster_target.h"
#include "cli/state/state_directory.h"
#include "job/file/load_job.h"

namespace muster {

/// FailedPrecondition if the state directory has the journal of another job, or of this job with
/// other values in fields that may not change on resume. The message shows both values and says
/// what to do.
absl::Status CheckSameJob(const LoadedJob& job, const StateDirectory& state);

/// How a verb names its job; each field may be empty.
struct JobTarget {
  std::string job_file;
  std::string state_directory;
  ClusterTarget cluster = {};
  /// If the state directory is only a link to a job: "the job ads in the namespace team of ...".
  std::string linked_job = {};
};

/// The job file that the target names. If it names none, ./job.yaml.
std::string JobFileOf(const JobTarget& target);

/// If `error` says that no job runs there (NotFound), the result also names the job file that the
/// verb looked at, and the jobs that run on this machine. Other errors stay the same.
absl::Status SayWhereLooked(const absl::Status& error, const JobTarget& target);

/// The state directory of the target: the given one, or that of the job file, or that of
/// ./job.yaml. InvalidArgument if there is none of these.
absl::StatusOr<StateDirectory> FindStateDirectory(const JobTarget& target);

}  // namespace muster
