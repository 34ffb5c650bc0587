#include "cli/ask/weights_of_job.h"

#include <filesystem>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/ask/export_command.h"
#include "cli/state/job_source.h"
#include "cli/state/running_jobs.h"

namespace muster {
namespace {

constexpr uint64_t kPositionBytesMax = 64 << 10;

std::string PositionFile(const std::string& folder) {
  return folder + ".position";
}

/// What an earlier call has said of the folder.
absl::StatusOr<std::string> EarlierPosition(const std::string& folder) {
  absl::StatusOr<std::string> position = ReadFile(PositionFile(folder), kPositionBytesMax);
  if (!absl::IsNotFound(position.status())) return position;
  return absl::AlreadyExistsError(
      fmt::format("{} is there, and nothing says of which job its weights are: remove it, or "
                  "choose another state directory",
                  folder));
}

absl::Status NeverRan(const StateDirectory& state) {
  return absl::NotFoundError(fmt::format(
      "no job runs, or has run, with the state directory {}, so there are no weights. {}",
      state.path(), RunningJobsText(FindRunningJobs())));
}

}  // namespace

std::optional<JobTarget> JobOfWeights(const std::string& weights) {
  std::error_code error;
  JobTarget job;
  if (std::filesystem::is_regular_file(weights, error)) {
    job.job_file = weights;
    return job;
  }
  if (!std::filesystem::exists(StateDirectory(weights).job_copy(), error)) return std::nullopt;
  job.state_directory = weights;
  return job;
}

std::string PositionText(const JobStatus& status, const v1::GetManifestResponse& manifest) {
  const std::string of = fmt::format("job '{}' ({})", status.name, ToString(status.state));
  if (manifest.has_group()) {
    return fmt::format("{}, after step {}", of, CountText(manifest.group().label().step()));
  }
  return fmt::format("{}, in which {} of {} records of training are COMMITTED", of,
                     CountText(status.progress.records_committed),
                     CountText(status.progress.records_expected));
}

absl::StatusOr<std::string> TakeWeights(const JobTarget& job, const std::string& folder) {
  if (std::filesystem::exists(folder)) return EarlierPosition(folder);
  QueryOptions query;
  query.target = job;
  MUSTER_ASSIGN_OR_RETURN(const StateDirectory state, FindStateDirectory(job));
  std::string position;
  const auto fetch = [&]() -> absl::StatusOr<v1::GetManifestResponse> {
    const absl::StatusOr<JobSource> source = FindJobSource(query);
    if (absl::IsNotFound(source.status())) return NeverRan(state);
    MUSTER_RETURN_IF_ERROR(source.status());
    MUSTER_ASSIGN_OR_RETURN(const JobStatus status, source->client->GetStatus());
    MUSTER_ASSIGN_OR_RETURN(v1::GetManifestResponse manifest, source->client->GetManifest({}));
    position = PositionText(status, manifest);
    return manifest;
  };
  const auto write = [&](const v1::GetManifestResponse& manifest) -> absl::Status {
    // It comes first, because the folder says that both are there.
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(PositionFile(folder), position));
    return WriteExportOf(manifest, state, folder);
  };
  MUSTER_RETURN_IF_ERROR(ExportWhileItRuns({.fetch = fetch, .write = write}).status());
  return position;
}

}  // namespace muster
