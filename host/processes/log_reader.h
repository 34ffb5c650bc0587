#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "host/node_host.h"

namespace muster {

/// Reads a RotatingLog (log_file.h), its file and the file before it, also while it is written. To
/// follow it, continue at `next_offset` of the previous piece. The last line is left out until it
/// is complete. NotFound if there is no log.
absl::StatusOr<LogPiece> ReadLog(const std::string& path, const LogQuestion& question);

/// The last `lines` lines of a log, also an unfinished one, at most `bytes_max` bytes. A longer
/// line loses its beginning. "" if the file is empty. NotFound if there is none.
absl::StatusOr<std::string> ReadLastLines(const std::string& path, uint32_t lines,
                                          uint64_t bytes_max);

/// The end of a log, and the position after it, where a LogFollower continues.
struct LogTail {
  std::string text;
  uint64_t end = 0;
};
/// The same as ReadLastLines. With `since`, only lines that were not complete before that second.
/// FailedPrecondition if no times are noted for the log (log_times.h).
absl::StatusOr<LogTail> ReadLogTail(const std::string& path, uint32_t lines,
                                    std::optional<WallTime> since, uint64_t bytes_max);

/// The same as ReadLastLines, but only for the node's last process, and without muster's own lines.
/// Messages about a failed node quote it. "" if there is nothing.
std::string LastWords(const std::string& path, uint32_t lines, uint64_t bytes_max);

/// Reads what is appended to a RotatingLog, also unfinished lines, across its rotations. Reads
/// nothing twice. Not thread-safe.
class LogFollower {
 public:
  /// Begins at `position` in all that the node ever wrote.
  LogFollower(std::string path, uint64_t position) : path_(std::move(path)), position_(position) {}
  /// Returns what was appended since the last call, at most `bytes_max` bytes. The next call
  /// returns the rest.
  std::string Next(uint64_t bytes_max);

 private:
  std::string path_;
  uint64_t position_ = 0;  // in all that the node ever wrote
};

}  // namespace muster
