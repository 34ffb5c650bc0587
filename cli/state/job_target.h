#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/state/cluster_target.h"
#include "cli/state/state_directory.h"
#include "job/file/load_job.h"

namespace muster {

/// FailedPrecondition when the state directory already holds the journal of another job, or of this
/// one with other values in fields that may not change on resume: shows both values and says what
/// to do.
absl::Status CheckSameJob(const LoadedJob& job, const StateDirectory& state);

/// How a verb names its job; each field may be empty.
struct JobTarget {
  std::string job_file;
  std::string state_directory;
  ClusterTarget cluster = {};
  /// "the job ads in the namespace team of ...", if the state directory is only a link to it.
  std::string linked_job = {};
};

/// The job file that the target names: ./job.yaml when it names none.
std::string JobFileOf(const JobTarget& target);

/// An error that no job runs there (NotFound) also says at which job file the verb looked, and
/// which jobs run on this machine. Other errors stay as they are.
absl::Status SayWhereLooked(const absl::Status& error, const JobTarget& target);

/// The state directory of the target: the given one, otherwise the job file's, otherwise that of
/// ./job.yaml. InvalidArgument if there is none of these.
absl::StatusOr<StateDirectory> FindStateDirectory(const JobTarget& target);

}  // namespace muster
