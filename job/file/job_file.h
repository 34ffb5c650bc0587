#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "job/job_spec.h"

namespace muster {

inline constexpr size_t kJobFileBytesMax = size_t{1} << 20;

/// The job that the text of a job file (YAML) describes: defaults filled in, bounds checked, paths
/// absolute. docs/job-file.md lists every field. FixedFields(job) says what may not change on
/// resume.
///
/// `file_name` is for messages. `base_directory`: an absolute folder (the job file's own) against
/// which relative paths are resolved, those in globs and a command with a slash too.
///
/// kInvalidArgument: the errors of the file, up to 20, one per line, each as
/// "file:line:column: field: what is wrong, with which value, and what to write".
absl::StatusOr<JobSpec> ParseJobFile(std::string_view text, const std::string& file_name,
                                     const std::string& base_directory);

}  // namespace muster
