#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptors.h"

namespace muster::exporting {

/// A connected socket for lines and bytes. Calls block. Errors: kCancelled as soon as `signal_fd`
/// is readable; kDeadlineExceeded if the other side is silent for longer than `silence_max`;
/// kUnavailable if the connection has ended. Not thread-safe.
class ExportSocket {
 public:
  ExportSocket(OwnedFd fd, int signal_fd, std::chrono::milliseconds silence_max)
      : fd_(std::move(fd)), signal_fd_(signal_fd), silence_max_(silence_max) {}
  /// Connects to a port of 127.0.0.1. `signal_fd` may be -1.
  static absl::StatusOr<ExportSocket> Connect(uint16_t port, int signal_fd,
                                              std::chrono::milliseconds silence_max);

  absl::Status Send(std::string_view bytes);
  /// Returns a line without its line break. kResourceExhausted if it is too long.
  absl::StatusOr<std::string> ReadLine();
  /// Reads exactly `count` bytes, and passes them on in pieces.
  absl::Status Read(uint64_t count, const std::function<absl::Status(std::string_view)>& on_piece);

 private:
  absl::Status WaitFor(short events) const;
  /// Reads what has arrived into buffer_. kUnavailable at the end of the connection.
  absl::Status Receive();

  OwnedFd fd_;
  int signal_fd_;
  std::chrono::milliseconds silence_max_;
  std::string buffer_;
};

}  // namespace muster::exporting
