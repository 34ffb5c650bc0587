#include "job/file/load_job.h"

#include <filesystem>

#include "base/file.h"
#include "base/status.h"
#include "job/file/job_file.h"

namespace muster {

absl::StatusOr<LoadedJob> LoadJob(const std::string& path, const std::string& base_directory) {
  LoadedJob job;
  std::error_code error;
  job.path = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error) job.path = path;
  absl::StatusOr<std::string> text = ReadFile(path, kJobFileBytesMax);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("the job file cannot be read: {}", Message(text.status())));
  }
  job.text = *std::move(text);
  job.base_directory = base_directory.empty()
                           ? std::filesystem::path(job.path).parent_path().string()
                           : base_directory;
  MUSTER_ASSIGN_OR_RETURN(job.spec, ParseJobFile(job.text, path, job.base_directory));
  return job;
}

}  // namespace muster
