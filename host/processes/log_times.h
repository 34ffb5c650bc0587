#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace muster {

/// Notes when the bytes of a RotatingLog were written, to the second, because lines do not begin
/// with their times. The file is `<log path>.times`, beside the log. Times that cannot be written
/// are not noted. Not thread-safe.
class LogTimes {
 public:
  explicit LogTimes(std::string log_path) : path_(std::move(log_path) + ".times") {}

  /// Notes that the byte at `position` of all that the node ever wrote is written now. It costs a
  /// short write once a second.
  void Note(uint64_t position, WallTime now);
  /// Call it when the log's file becomes the older one.
  void Rotate();

 private:
  std::string path_;
  int64_t noted_s_ = -1;
};

/// The position from which on everything was written at `since` or later (or in the same second).
/// If nothing was, it is the end of the log, `end`. None if no times are noted for this log.
std::optional<uint64_t> PositionSince(const std::string& log_path, WallTime since, uint64_t end);

}  // namespace muster
