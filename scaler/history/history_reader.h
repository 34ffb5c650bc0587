#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "scaler/history/history_files.h"
#include "scaler/history/history_line.h"

namespace muster::scaler {

/// Reads what HistoryWriter wrote, as the views that policies saw. Times are wall time since the
/// Unix epoch and never go back within a run. Lines that cannot be read, for example because a
/// crash cut them off, are skipped and counted. A value with one owner; not thread-safe.
class HistoryReader {
 public:
  /// Errors: kNotFound when `folder` has no history.
  static absl::StatusOr<HistoryReader> Open(const std::string& folder);

  /// The view of the next moment; nullptr at the end. Valid until the next call. Its `taken` are
  /// the actions that were really taken. If you step other policies through the view, you can
  /// replace them with what those would have done.
  JobView* Next();
  /// True if the newest view is the first of a run. What policies learned before belongs to another
  /// run.
  bool begins_run() const { return begins_run_; }

  uint64_t lines_skipped() const { return lines_skipped_; }
  /// The first line that was skipped, and why: "FILE:LINE: ...". Empty if none was.
  const std::string& first_skipped() const { return first_skipped_; }
  /// Files that could not be read at all.
  const std::vector<std::string>& unread() const { return unread_; }

 private:
  explicit HistoryReader(std::vector<HistoryFile> files) : files_(files.begin(), files.end()) {}
  bool LoadFile();
  void Take(HistoryHead head);
  void Take(HistoryMoment moment);

  std::deque<HistoryFile> files_;
  std::string path_;
  std::string contents_;
  size_t position_ = 0;
  uint64_t line_ = 0;
  JobShape shape_;
  std::string run_id_;
  bool new_run_ = false;
  bool begins_run_ = false;
  TimePoint::duration shift_{0};
  JobView view_;
  uint64_t lines_skipped_ = 0;
  std::string first_skipped_;
  std::vector<std::string> unread_;
};

}  // namespace muster::scaler
