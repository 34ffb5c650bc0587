#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/job_spec.h"
#include "proto/status/job_status.h"
#include "scaler/history/run_summary.h"

/// Compares jobs: their results, their cost, and their different settings. Pure.
namespace muster::metrics {

/// A job, as its state directory shows it.
struct ComparedJob {
  std::string given;  // as the user named it
  std::string state_directory;
  JobStatus status;
  std::vector<scaler::RunSummary> runs;  // the newest 20, oldest first; none if they are not known
  /// The name and value of each setting, in a fixed order. Empty if there is no copy of the job
  /// file.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// The settings that people change from one job to another: the fixed fields, epochs, numbers of
/// processes, the trainer's command and environment, and the settings of training.
std::vector<std::pair<std::string, std::string>> SettingsOf(const JobSpec& spec);

/// The time from the begin of the job's first run to the end of its last run. None if it is not
/// known: if there are no summaries, or as many as are kept, because older ones may be gone then.
std::optional<double> WallSecondsOf(const ComparedJob& job);
/// Committed training records per second of all the job's runs together. Starts, restarts and
/// evaluations are included in the time. None if the job ran for less than a second.
std::optional<double> RecordsPerSecondOf(const ComparedJob& job);

/// A setting that differs, with its value in each job. It is absent if the job does not have it.
struct Difference {
  std::string field;
  std::vector<std::optional<std::string>> values;
};
/// Values of environment variables are hidden if their names look like those of secrets
/// (cli/show/secret_name.h).
std::vector<Difference> DifferencesOf(const std::vector<ComparedJob>& jobs);

/// Tables of at most 80 columns, with up to three jobs in each. A * stands at the best value of a
/// row if the metric's name says what is better. For two jobs, the last column is the change.
std::string ComparisonText(const std::vector<ComparedJob>& jobs);
/// docs/cli.md describes it.
nlohmann::json ComparisonToJson(const std::vector<ComparedJob>& jobs);

}  // namespace muster::metrics
