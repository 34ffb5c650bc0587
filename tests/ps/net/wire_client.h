#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/frame.h"

namespace muster::ps::testing {

/// One frame as it came.
struct Frame {
  wire::Header header;
  std::string directory;
  std::vector<float> values;  // widened
};

/// A blocking client of the data plane for tests: sends what it is told to, well-formed or not.
class WireClient {
 public:
  /// Connects to "unix:/path" or "127.0.0.1:port"; connected() says whether it worked.
  /// `receive_buffer`: bytes that the kernel keeps for it; 0: its default.
  explicit WireClient(const std::string& address, int receive_buffer = 0)
      : receive_buffer_(receive_buffer) {
    if (address.starts_with("unix:")) {
      sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
      address.copy(to.sun_path, sizeof(to.sun_path) - 1, 5);
      Connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    } else {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      Connect(AF_INET, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    }
  }
  ~WireClient() {
    if (fd_ >= 0) ::close(fd_);
  }
  WireClient(const WireClient&) = delete;
  WireClient& operator=(const WireClient&) = delete;

  bool connected() const { return fd_ >= 0; }

  void SendBytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  /// Sends the frame; the sizes in `header` are filled in.
  void Send(wire::Header header, std::string_view directory, std::span<const uint64_t> keys = {},
            std::string_view values = {}) {
    header.directory_bytes = static_cast<uint32_t>(directory.size());
    header.keys = keys.size();
    header.value_bytes = values.size();
    std::array<std::byte, wire::kHeaderBytes> bytes;
    wire::EncodeHeader(header, bytes);
    std::string frame(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    frame.append(directory);
    frame.append(reinterpret_cast<const char*>(keys.data()), keys.size_bytes());
    frame.append(values);
    SendBytes(frame);
  }

  void SendHello(const std::string& job, const std::string& job_id = "id-1") {
    wire::Header header;
    header.kind = wire::Kind::kHello;
    Send(header,
         wire::EncodeHello({.job = job, .job_id = job_id, .peer = "worker-0", .software = "test"}));
  }

  /// The next frame, or nothing at the end of the stream.
  std::optional<Frame> Receive() {
    std::array<std::byte, wire::kHeaderBytes> bytes;
    if (!ReadAll(bytes.data(), bytes.size())) return std::nullopt;
    const auto header = wire::DecodeHeader(bytes);
    if (!header.ok()) return std::nullopt;
    Frame frame;
    frame.header = *header;
    frame.directory.resize(header->directory_bytes);
    std::vector<std::byte> values(header->value_bytes);
    if (!ReadAll(frame.directory.data(), frame.directory.size()) ||
        !ReadAll(values.data(), values.size())) {
      return std::nullopt;
    }
    frame.values.resize(values.size() / wire::BytesPerValue(header->encoding));
    wire::DecodeValues(values, header->encoding, frame.values);
    return frame;
  }

  /// The text of the Error frame that comes next and must be the last one; otherwise what came.
  std::string ReceiveErrorAndEnd() {
    const std::optional<Frame> frame = Receive();
    if (!frame) return "(end of stream)";
    if (frame->header.kind != wire::Kind::kError) return "(not an error)";
    const auto text = wire::DecodeError(frame->directory);
    if (Receive()) return "(another frame after the error)";
    return text.ok() ? *text : "(malformed error)";
  }

 private:
  void Connect(int family, const sockaddr* to, socklen_t size) {
    fd_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer_ > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_, sizeof(receive_buffer_));
    }
    const timeval patience{.tv_sec = 20, .tv_usec = 0};  // a failing test ends, too
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (::connect(fd_, to, size) != 0) {
      ::close(fd_);
      fd_ = -1;
    }
  }
  bool ReadAll(void* to, size_t bytes) {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::recv(fd_, at, bytes, 0);
      if (got <= 0) return false;
      at += got;
      bytes -= static_cast<size_t>(got);
    }
    return true;
  }

  const int receive_buffer_;
  int fd_ = -1;
};

}  // namespace muster::ps::testing
