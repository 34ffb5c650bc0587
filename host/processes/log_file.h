#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "host/processes/log_times.h"

namespace muster {

/// muster writes a line into a node's log before each start of the node; that line begins with the
/// first mark. Its other lines begin with the second.
inline constexpr std::string_view kLogMark = "--- muster: ";
inline constexpr std::string_view kLogAside = "... muster: ";

/// A log that never grows beyond about twice its limit. When the file is full, it becomes
/// `<path>.1` (replacing the former one), and a new file begins; `<path>.base` says how many bytes
/// came before it (log_reader.h). Not thread-safe.
class RotatingLog {
 public:
  /// Opens `path` for appending. Errors name the path.
  static absl::StatusOr<RotatingLog> Open(std::string path, uint64_t bytes_max);

  /// Appends. Text that cannot be written (disk full) is dropped, because a log must not stop the
  /// node. `now`, if it is given, is noted as their time (log_times.h).
  void Write(std::string_view bytes, std::optional<WallTime> now = std::nullopt);

  /// True if the file ends in the middle of a line.
  bool within_line() const { return within_line_; }

 private:
  RotatingLog(std::string path, uint64_t bytes_max, OwnedFd fd, uint64_t bytes, bool within_line);
  void Rotate();

  std::string path_;
  uint64_t bytes_max_ = 0;
  OwnedFd fd_;
  uint64_t base_ = 0;   // bytes of the node before this file
  uint64_t bytes_ = 0;  // of this file
  bool within_line_ = false;
  LogTimes times_;
};

/// How many bytes RotatingLog has noted that came before its present file; 0 when nothing is noted.
uint64_t ReadLogBase(const std::string& path);

}  // namespace muster
