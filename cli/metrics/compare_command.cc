#include "cli/metrics/compare_command.h"

#include <filesystem>
#include <utility>

#include "admin/admin_client.h"
#include "base/status.h"
#include "cli/metrics/comparison.h"
#include "cli/state/job_source.h"
#include "cli/state/stored_job.h"
#include "job/file/load_job.h"
#include "proto/fields/json.h"
#include "scaler/history/job_history.h"

namespace muster::metrics {
namespace {

/// Asks the running job's master, or reads the state directory. It says nothing about jobs that do
/// not run, because that is usual here.
absl::StatusOr<JobStatus> StatusOf(const QueryOptions& query) {
  absl::StatusOr<std::unique_ptr<AdminClient>> client = ConnectToMaster(query);
  if (absl::IsNotFound(client.status())) client = OpenStoredJob(query.target);
  if (!client.ok()) return client.status();
  return (*client)->GetStatus();
}

absl::StatusOr<ComparedJob> Look(const std::string& given) {
  QueryOptions query;
  std::error_code ignored;
  if (std::filesystem::is_directory(given, ignored)) {
    query.target.state_directory = given;
  } else {
    query.target.job_file = given;
  }
  MUSTER_ASSIGN_OR_RETURN(const StateDirectory state, FindStateDirectory(query.target));
  ComparedJob job{.given = given, .state_directory = state.path(), .runs = {}, .settings = {}};
  MUSTER_ASSIGN_OR_RETURN(job.status, StatusOf(query));
  absl::StatusOr<std::vector<scaler::RunSummary>> runs =
      scaler::ReadSummaries(state.scaler() + "/history");
  if (runs.ok()) job.runs = *std::move(runs);
  // All jobs get the same base folder. Otherwise equal relative paths would seem to differ.
  const absl::StatusOr<LoadedJob> loaded = LoadJob(state.job_copy(), "/");
  if (loaded.ok()) job.settings = SettingsOf(loaded->spec);
  return job;
}

}  // namespace

int CompareCommand(const CompareOptions& options) {
  std::vector<ComparedJob> jobs;
  for (const std::string& given : options.jobs) {
    absl::StatusOr<ComparedJob> job = Look(given);
    if (!job.ok()) return PrintError(Annotate(job.status(), given));
    jobs.push_back(*std::move(job));
  }
  PrintData(options.output == OutputFormat::kJson ? JsonText(ComparisonToJson(jobs), 2) + "\n"
                                                  : ComparisonText(jobs));
  return kExitSucceeded;
}

}  // namespace muster::metrics
