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

/// Jobs side by side: what they reached, what it cost, what was set differently. Pure.
namespace muster::metrics {

/// A job as its state directory shows it.
struct ComparedJob {
  std::string given;  // as the user named it
  std::string state_directory;
  JobStatus status;
  std::vector<scaler::RunSummary> runs;  // oldest first, the newest 20; none if they are not known
  /// Name and value of each setting, in a fixed order; none if there is no copy of the job file.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// The settings that people change between two jobs: the fixed fields, epochs, numbers of
/// processes, the trainer's command and environment, the settings of training.
std::vector<std::pair<std::string, std::string>> SettingsOf(const JobSpec& spec);

/// From the begin of the job's first run to the end of its last. Nothing if that is not known:
/// there are no summaries, or as many as are kept, so that older ones may be gone.
std::optional<double> WallSecondsOf(const ComparedJob& job);
/// Committed training records in the time that the job ran, all its runs together, starts and
/// restarts and evaluations included. Nothing if it ran for less than a second.
std::optional<double> RecordsPerSecondOf(const ComparedJob& job);

/// A setting that differs, with its value in each job; absent: the job does not have it.
struct Difference {
  std::string field;
  std::vector<std::optional<std::string>> values;
};
/// Values of environment variables with the names of secrets (cli/show/secret_name.h) are hidden.
std::vector<Difference> DifferencesOf(const std::vector<ComparedJob>& jobs);

/// Tables of at most 80 columns, with up to three jobs in each. A * stands at the best value of a
/// row if the metric's name says what is better. For two jobs, the last column is the change.
std::string ComparisonText(const std::vector<ComparedJob>& jobs);
/// docs/cli.md documents it.
nlohmann::json ComparisonToJson(const std::vector<ComparedJob>& jobs);

}  // namespace muster::metrics
