#include "cli/show/output.h"

#include <sys/ioctl.h>

#include <cstdio>

#include "base/status.h"

namespace muster {

void PrintData(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::optional<size_t> ColumnsOf(int fd) {
  constexpr size_t kColumnsMin = 20;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col <= kColumnsMin) return std::nullopt;
  return size.ws_col - 1;  // some terminals begin a line after the last column
}

void PrintNote(std::string_view message) {
  fmt::print(stderr, "muster: {}\n", message);
  std::fflush(stderr);
}

int PrintError(std::string_view message, int exit_code) {
  PrintNote(message);
  return exit_code;
}

int PrintError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnauthenticated:
      return PrintError(Message(status), kExitUnreachable);
    case absl::StatusCode::kInvalidArgument:
      return PrintError(Message(status), kExitUsage);
    default:
      return PrintError(Message(status), kExitFailed);
  }
}

}  // namespace muster
