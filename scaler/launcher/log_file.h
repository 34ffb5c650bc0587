#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

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
  RotatingLog(RotatingLog&& other) noexcept;
  RotatingLog& operator=(RotatingLog&& other) noexcept;
  ~RotatingLog();

  /// Appends. What cannot be written (disk full) is dropped: a log must never stop the node.
  void Write(std::string_view bytes);

 private:
  RotatingLog(std::string path, uint64_t bytes_max, int fd, uint64_t bytes)
      : path_(std::move(path)), bytes_max_(bytes_max), fd_(fd), bytes_(bytes) {}
  void Rotate();

  std::string path_;
  uint64_t bytes_max_ = 0;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

/// The last `lines` lines of the file, at most `bytes_max` bytes of them (a longer line loses its
/// beginning); "" when the file is empty. NotFound when there is none.
absl::StatusOr<std::string> ReadLastLines(const std::string& path, uint32_t lines,
                                          uint64_t bytes_max);

/// As above, of the node's last process alone and without muster's own marks: what a root cause
/// quotes. "" when there is nothing.
std::string LastWords(const std::string& path, uint32_t lines, uint64_t bytes_max);

}  // namespace muster
