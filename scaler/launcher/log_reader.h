#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "scaler/core/node_host.h"

namespace muster {

/// Reads a RotatingLog (log_file.h) while it is written: its file and the one before it. To follow
/// it, ask for `next_offset` of the piece before. The last line is left out until it ends. NotFound
/// when there is no log.
absl::StatusOr<LogPiece> ReadLog(const std::string& path, const LogQuestion& question);

/// What is appended to a RotatingLog, unfinished lines too, over its rotation. Reads nothing twice.
/// Not thread-safe.
class LogFollower {
 public:
  /// Begins at the log's end.
  explicit LogFollower(std::string path);
  /// What was appended since the last call, at most `bytes_max` of it: the rest comes next time.
  std::string Next(uint64_t bytes_max);

 private:
  std::string path_;
  uint64_t position_ = 0;  // in all that the node ever wrote
};

/// Where RotatingLog notes how many bytes came before its present file.
std::string LogBasePath(const std::string& path);
/// 0 when nothing is noted.
uint64_t ReadLogBase(const std::string& path);
/// What cannot be written is not noted: offsets then begin anew.
void WriteLogBase(const std::string& path, uint64_t bytes);

}  // namespace muster
