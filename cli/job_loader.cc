#include "cli/job_loader.h"

#include <filesystem>

#include "base/file.h"
#include "base/status.h"
#include "cli/job_file/job_file.h"

namespace muster {
namespace {

constexpr char kDefaultJobFile[] = "job.yaml";

}  // namespace

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

absl::Status CheckSameJob(const LoadedJob& job, const StateDirectory& state) {
  // Without a journal nothing is fixed yet.
  if (!std::filesystem::exists(state.journal())) return absl::OkStatus();
  absl::StatusOr<LoadedJob> former = LoadJob(state.job_copy(), job.base_directory);
  if (!former.ok()) return absl::OkStatus();  // the journal itself decides
  const std::string advice = fmt::format(
      "Choose another spec.stateDirectory for the new job, put the former value back to resume the "
      "old "
      "one, or delete {} to give up what it has trained",
      state.path());
  if (former->spec.name != job.spec.name) {
    return absl::FailedPreconditionError(
        fmt::format("the state directory {} belongs to the job '{}', not to '{}'. {}", state.path(),
                    former->spec.name, job.spec.name, advice));
  }
  const auto now = FixedFields(job.spec);
  std::string changes;
  for (const auto& [field, value] : FixedFields(former->spec)) {
    std::string other = "(gone)";
    for (const auto& [name, new_value] : now) {
      if (name == field) other = new_value;
    }
    if (other != value) changes += fmt::format("\n  {}: was {}, is now {}", field, value, other);
  }
  if (changes.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the job '{}' cannot be resumed from {}: these fields may not change:{}\n{}",
                  job.spec.name, state.path(), changes, advice));
}

std::string JobFileOf(const JobTarget& target) {
  return target.job_file.empty() ? kDefaultJobFile : target.job_file;
}

absl::StatusOr<StateDirectory> FindStateDirectory(const JobTarget& target) {
  if (!target.state_directory.empty()) return StateDirectory(target.state_directory);
  const std::string file = JobFileOf(target);
  if (target.job_file.empty() && !std::filesystem::exists(file)) {
    return absl::InvalidArgumentError(
        "which job? name its file (muster status job.yaml) or its state directory (--state-dir "
        "DIR); "
        "there is no ./job.yaml");
  }
  MUSTER_ASSIGN_OR_RETURN(const LoadedJob job, LoadJob(file, ""));
  return StateDirectory(job.spec.state_directory);
}

}  // namespace muster
