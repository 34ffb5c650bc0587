#include "cli/export/export_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/status.h"

namespace muster::exporting {
namespace {

/// The manifest of a job with very many partitions still fits.
constexpr size_t kLineBytesMax = 64 << 20;
constexpr size_t kPieceBytes = 256 << 10;

bool IsPassing(int error) {
  return error == EINTR || error == EAGAIN;
}

}  // namespace

absl::StatusOr<ExportSocket> ExportSocket::Connect(uint16_t port, int signal_fd,
                                                   std::chrono::milliseconds silence_max) {
  OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd.get() < 0 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, fmt::format("127.0.0.1:{}", port));
  }
  return ExportSocket(std::move(fd), signal_fd, silence_max);
}

absl::Status ExportSocket::WaitFor(short events) const {
  while (true) {
    std::array<pollfd, 2> fds = {{{fd_.get(), events, 0}, {signal_fd_, POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(silence_max_.count()));
    if (ready < 0 && IsPassing(errno)) continue;
    if (ready < 0) return absl::ErrnoToStatus(errno, "poll");
    if (ready == 0) {
      return absl::DeadlineExceededError(
          fmt::format("the other side was silent for {} s", silence_max_.count() / 1000));
    }
    if (fds[1].revents != 0) return absl::CancelledError("a signal ended it");
    return absl::OkStatus();
  }
}

absl::Status ExportSocket::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    MUSTER_RETURN_IF_ERROR(WaitFor(POLLOUT));
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && IsPassing(errno)) continue;
    if (sent < 0) return absl::UnavailableError("the other side has closed the connection");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::Status ExportSocket::Receive() {
  while (true) {
    MUSTER_RETURN_IF_ERROR(WaitFor(POLLIN));
    const size_t had = buffer_.size();
    buffer_.resize(had + kPieceBytes);
    const ssize_t got = ::recv(fd_.get(), buffer_.data() + had, kPieceBytes, MSG_DONTWAIT);
    const int error = errno;
    buffer_.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && IsPassing(error)) continue;
    if (got <= 0) return absl::UnavailableError("the other side has closed the connection");
    return absl::OkStatus();
  }
}

absl::StatusOr<std::string> ExportSocket::ReadLine() {
  size_t searched = 0;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    searched = buffer_.size();
    if (searched > kLineBytesMax) return absl::ResourceExhaustedError("a line is too long");
    MUSTER_RETURN_IF_ERROR(Receive());
  }
}

absl::Status ExportSocket::Read(uint64_t count,
                                const std::function<absl::Status(std::string_view)>& on_piece) {
  while (count > 0) {
    if (buffer_.empty()) MUSTER_RETURN_IF_ERROR(Receive());
    const size_t taken = std::min<uint64_t>(count, buffer_.size());
    MUSTER_RETURN_IF_ERROR(on_piece(std::string_view(buffer_).substr(0, taken)));
    buffer_.erase(0, taken);
    count -= taken;
  }
  return absl::OkStatus();
}

}  // namespace muster::exporting
