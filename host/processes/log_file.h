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

/// Before each start of a node, muster writes a line that begins with the first mark into the
/// node's log. Its other lines begin with the second mark.
inline constexpr std::string_view kLogMark = "--- muster: ";
inline constexpr std::string_view kLogAside = "... muster: ";

/// A log that never grows beyond about twice its limit. When the file is full, it becomes
/// `<path>.1`, replacing an older one, and a new file begins. `<path>.base` says how many bytes
/// came before the new file (log_reader.h). Not thread-safe.
class RotatingLog {
 public:
  /// Opens `path` for appending. Errors name the path.
  static absl::StatusOr<RotatingLog> Open(std::string path, uint64_t bytes_max);

  /// Appends text. If it cannot be written (disk full), it is dropped, because a log must not stop
  /// the node. `now`, if given, is noted as the time of the text (log_times.h).
  void Write(std::string_view bytes, std::optional<WallTime> now = std::nullopt);

  /// True if the file ends in the middle of a line.
  bool within_line() const { return within_line_; }

 private:
  RotatingLog(std::string path, uint64_t bytes_max, OwnedFd fd, uint64_t bytes, bool within_line);
  void Rotate();

  std::string path_;
  uint64_t bytes_max_ = 0;
  OwnedFd fd_;
  uint64_t base_ = 0;   // bytes that the node wrote before this file
  uint64_t bytes_ = 0;  // bytes in this file
  bool within_line_ = false;
  LogTimes times_;
};

/// How many bytes came before RotatingLog's present file, as noted. 0 if nothing is noted.
uint64_t ReadLogBase(const std::string& path);

}  // namespace muster
