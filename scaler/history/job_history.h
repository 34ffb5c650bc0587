#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scaler/history/history_writer.h"
#include "scaler/history/run_summary.h"

namespace muster::scaler {

/// The summaries in `folder`, oldest first. The list is empty if there is no file of them. Errors:
/// kDataLoss if the file cannot be understood.
absl::StatusOr<std::vector<RunSummary>> ReadSummaries(const std::string& folder);

/// Everything that a scaler leaves for later runs of its job: the history, second by second, and
/// `runs.json`, a summary of each of the newest 20 runs. If a write fails, that data is lost and
/// the log says so. A value with one owner; not thread-safe.
class JobHistory {
 public:
  /// Continues the summary of earlier scalers of the same run. Creates `folder` when it is needed.
  JobHistory(std::string folder, HistoryHead head);

  /// What the runs before `run_id` needed, for JobShape::history. Empty if there were no such runs.
  /// Also empty if their summaries cannot be read; the log then says so.
  static std::map<NodeRole, RoleHistory> Earlier(const std::string& folder,
                                                 const std::string& run_id);

  /// Call it after each JobSensor::View. It writes the summary once a minute.
  void Append(const JobView& view, WallTime wall);
  /// Call it at the end of the run. `well` says that the job succeeded.
  void Finish(bool well);

 private:
  void Save();

  std::string folder_;
  std::vector<RunSummary> before_;
  HistoryWriter writer_;
  RunSummarizer summarizer_;
  TimePoint saved_at_;
  bool failing_ = false;
};

}  // namespace muster::scaler
