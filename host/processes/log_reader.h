#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "host/node_host.h"

namespace muster {

/// Reads a RotatingLog (log_file.h) while it is written: its file and the file before it. To follow
/// it, continue at `next_offset` of the previous piece. The last line is left out until it is
/// complete. NotFound if there is no log.
absl::StatusOr<LogPiece> ReadLog(const std::string& path, const LogQuestion& question);

/// The last `lines` lines of a log, unfinished ones too, at most `bytes_max` bytes of them (a
/// longer line loses its beginning); "" when the file is empty. NotFound when there is none.
absl::StatusOr<std::string> ReadLastLines(const std::string& path, uint32_t lines,
                                          uint64_t bytes_max);

/// The end of a log, and the position after it, where a LogFollower goes on.
struct LogTail {
  std::string text;
  uint64_t end = 0;
};
/// As ReadLastLines. With `since`: only lines that were not complete before that second.
/// FailedPrecondition when no times are noted for the log (log_times.h).
absl::StatusOr<LogTail> ReadLogTail(const std::string& path, uint32_t lines,
                                    std::optional<WallTime> since, uint64_t bytes_max);

/// As ReadLastLines, but only of the node's last process and without muster's own lines. Messages
/// about a failed node quote it. "" if there is nothing.
std::string LastWords(const std::string& path, uint32_t lines, uint64_t bytes_max);

/// What is appended to a RotatingLog, unfinished lines too, over its rotation. Reads nothing twice.
/// Not thread-safe.
class LogFollower {
 public:
  /// Begins at `position` of all that the node ever wrote.
  LogFollower(std::string path, uint64_t position) : path_(std::move(path)), position_(position) {}
  /// What was appended since the last call, at most `bytes_max` of it: the rest comes next time.
  std::string Next(uint64_t bytes_max);

 private:
  std::string path_;
  uint64_t position_ = 0;  // in all that the node ever wrote
};

}  // namespace muster
