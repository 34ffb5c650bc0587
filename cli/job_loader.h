#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/state_directory.h"
#include "sharding/job_spec.h"

namespace muster {

/// A job file, read and checked.
struct LoadedJob {
  JobSpec spec;
  std::string text;            // as written
  std::string path;            // absolute
  std::string base_directory;  // relative paths in it begin here
};

/// Reads and parses a job file. `base_directory` "" = the folder that holds the file. Errors name
/// the file, and line and column where there are any.
absl::StatusOr<LoadedJob> LoadJob(const std::string& path, const std::string& base_directory);

/// FailedPrecondition when the state directory already holds the journal of another job, or of this
/// one with other values in fields that may not change on resume: shows both values and says what
/// to do.
absl::Status CheckSameJob(const LoadedJob& job, const StateDirectory& state);

/// How a verb names the job that it is about: each may be empty.
struct JobTarget {
  std::string job_file;
  std::string state_directory;
};

/// The job file that the target names: ./job.yaml when it names none.
std::string JobFileOf(const JobTarget& target);

/// The state directory of the target: as given, else the job file's, else that of ./job.yaml.
/// InvalidArgument when nothing names one.
absl::StatusOr<StateDirectory> FindStateDirectory(const JobTarget& target);

}  // namespace muster
