#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "job/job_spec.h"

namespace muster {

/// A job file that was read and checked.
struct LoadedJob {
  JobSpec spec;
  std::string text;            // as written
  std::string path;            // absolute; of a text its name
  std::string base_directory;  // relative paths in it begin here
};

/// Reads and parses a job file. If `base_directory` is "", it is the folder of the file. Errors
/// name the file, and line and column if there are any.
absl::StatusOr<LoadedJob> LoadJob(const std::string& path, const std::string& base_directory);

/// The same of a text. `name` stands for the file in errors.
absl::StatusOr<LoadedJob> ReadJob(std::string text, const std::string& name,
                                  const std::string& base_directory);

}  // namespace muster
