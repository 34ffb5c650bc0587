#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/file.h"
#include "scaler/history/history_line.h"

namespace muster::scaler {

/// Writes a job's history into numbered files of a folder: `history-00000001.jsonl` and so on. If
/// they become too large together, the oldest file is removed. Each scaler begins a new file.
///
/// If a line cannot be written, for example because the disk is full, only the history lacks it.
/// The log says once when that begins, and once when it is over. Nothing is synced. A value with
/// one owner; not thread-safe.
class HistoryWriter {
 public:
  struct Options {
    uint64_t bytes_max = 64 << 20;  // of all files
    uint64_t file_bytes_max = 4 << 20;
  };
  HistoryWriter(std::string folder, HistoryHead head)
      : HistoryWriter(std::move(folder), std::move(head), Options{}) {}
  HistoryWriter(std::string folder, HistoryHead head, const Options& options);

  /// Call it once a second. A call that comes earlier writes only ends and actions.
  void Append(const JobView& view, WallTime wall);
  /// How many lines this writer could not write.
  uint64_t lines_lost() const { return lines_lost_; }

 private:
  absl::Status Write(const std::string& line);
  absl::Status BeginFile();
  void Told(const absl::Status& written);

  std::string folder_;
  std::string head_;
  Options options_;
  std::optional<OutputFile> file_;
  uint64_t offset_ = 0;
  std::optional<TimePoint> written_at_;
  bool failing_ = false;
  uint64_t lines_lost_ = 0;
};

}  // namespace muster::scaler
