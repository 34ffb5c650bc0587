#include "job/file/load_job.h"

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "job/file/job_file.h"

namespace muster {

absl::StatusOr<LoadedJob> LoadJob(const std::string& path, const std::string& base_directory) {
  std::error_code error;
  std::string full = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error) full = path;
  absl::StatusOr<std::string> text = ReadFile(path, kJobFileBytesMax);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("the job file cannot be read: {}", Message(text.status())));
  }
  MUSTER_ASSIGN_OR_RETURN(
      LoadedJob job,
      ReadJob(*std::move(text), path,
              base_directory.empty() ? std::filesystem::path(full).parent_path().string()
                                     : base_directory));
  job.path = std::move(full);
  return job;
}

absl::StatusOr<LoadedJob> ReadJob(std::string text, const std::string& name,
                                  const std::string& base_directory) {
  LoadedJob job{
      .spec = {}, .text = std::move(text), .path = name, .base_directory = base_directory};
  MUSTER_ASSIGN_OR_RETURN(job.spec, ParseJobFile(job.text, name, base_directory));
  return job;
}

}  // namespace muster
