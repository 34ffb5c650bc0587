#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "job/job_spec.h"

namespace muster {

inline constexpr size_t kJobFileBytesMax = size_t{1} << 20;

/// Parses the text of a job file (YAML) into a job. Defaults are filled in, bounds are checked, and
/// paths are absolute. docs/job-file.md lists every field. FixedFields(job) says which fields may
/// not change on resume.
///
/// `file_name` is for messages. `base_directory` is an absolute folder (that of the job file).
/// Relative paths begin there, also those in globs, and a command with a slash.
///
/// kInvalidArgument has the errors of the file, up to 20, one per line. Each is "file:line:column:
/// field: what is wrong, with which value, and what to write".
absl::StatusOr<JobSpec> ParseJobFile(std::string_view text, const std::string& file_name,
                                     const std::string& base_directory);

}  // namespace muster
