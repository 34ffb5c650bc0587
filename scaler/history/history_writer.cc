#include "scaler/history/history_writer.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "scaler/history/history_files.h"

namespace muster::scaler {
namespace {

/// Readings are not exact in time.
constexpr std::chrono::milliseconds kPause{900};

bool AnySampleAfter(const JobView& view, TimePoint at) {
  return std::any_of(view.nodes.begin(), view.nodes.end(), [at](const NodeView& node) {
    return !node.samples.empty() && node.samples.back().at > at;
  });
}

}  // namespace

HistoryWriter::HistoryWriter(std::string folder, HistoryHead head, const Options& options)
    : folder_(std::move(folder)), head_(HistoryLine(head)), options_(options) {}

void HistoryWriter::Append(const JobView& view, WallTime wall) {
  const TimePoint before = written_at_.value_or(TimePoint::min());
  const bool due = !written_at_.has_value() || view.now - before >= kPause;
  if (!due && view.ends.empty() && view.taken.empty() && !AnySampleAfter(view, before)) return;
  Told(Write(HistoryLine(view, wall, before)));
  written_at_ = view.now;
}

absl::Status HistoryWriter::Write(const std::string& line) {
  if (file_.has_value() && offset_ + line.size() > options_.file_bytes_max) file_.reset();
  if (!file_.has_value()) {
    MUSTER_RETURN_IF_ERROR(BeginFile());
  }
  // This overwrites what a failed attempt has left, or leaves it as a line that readers skip.
  MUSTER_RETURN_IF_ERROR(file_->WriteAt(offset_, line));
  offset_ += line.size();
  return absl::OkStatus();
}

absl::Status HistoryWriter::BeginFile() {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(folder_));
  const std::vector<HistoryFile> files = ListHistory(folder_);
  uint64_t bytes = options_.file_bytes_max;
  for (const HistoryFile& file : files) bytes += file.bytes;
  for (const HistoryFile& file : files) {
    if (bytes <= options_.bytes_max) break;
    RemoveFile(file.path);
    bytes -= file.bytes;
  }
  const uint64_t number = files.empty() ? 1 : files.back().number + 1;
  const std::string path = HistoryPath(folder_, number);
  MUSTER_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
  if (const absl::Status written = file.WriteAt(0, head_); !written.ok()) {
    // Otherwise a disk that is full for a day would get many empty files.
    RemoveFile(path);
    return written;
  }
  file_.emplace(std::move(file));
  offset_ = head_.size();
  return absl::OkStatus();
}

void HistoryWriter::Told(const absl::Status& written) {
  if (!written.ok()) {
    ++lines_lost_;
    if (!std::exchange(failing_, true)) {
      Log(LogLevel::kWarning, "the job's history has a gap, and nothing else: {}",
          Message(written));
    }
  } else if (std::exchange(failing_, false)) {
    Log(LogLevel::kInfo, "the job's history is written again; {} lines are missing", lines_lost_);
  }
}

}  // namespace muster::scaler
