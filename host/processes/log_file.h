#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptors.h"

namespace muster {

/// The line that muster itself writes into a node's log before each life of it begins with this,
/// and other lines of its own with the second.
inline constexpr std::string_view kLogMark = "--- muster: ";
inline constexpr std::string_view kLogAside = "... muster: ";

/// A log that never grows beyond about twice its limit: when it is full it becomes `<path>.1`
/// (replacing the former one) and a fresh file begins; `<path>.base` says how much came before it
/// (log_reader.h). Not thread-safe.
class RotatingLog {
 public:
  /// Opens `path` for appending. Errors name the path.
  static absl::StatusOr<RotatingLog> Open(std::string path, uint64_t bytes_max);

  /// Appends. What cannot be written (disk full) is dropped: a log must never stop the node.
  void Write(std::string_view bytes);

 private:
  RotatingLog(std::string path, uint64_t bytes_max, OwnedFd fd, uint64_t bytes)
      : path_(std::move(path)), bytes_max_(bytes_max), fd_(std::move(fd)), bytes_(bytes) {}
  void Rotate();

  std::string path_;
  uint64_t bytes_max_ = 0;
  OwnedFd fd_;
  uint64_t bytes_ = 0;
};

/// How many bytes RotatingLog has noted that came before its present file; 0 when nothing is noted.
uint64_t ReadLogBase(const std::string& path);

}  // namespace muster
