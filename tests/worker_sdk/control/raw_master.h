#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptors.h"

namespace muster::sdk::testing {

/// HTTP/2 frames (RFC 9113) as bytes.
enum FrameType : char { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kGoAway = 7 };
inline constexpr char kEndStream = 1;

inline std::string Word(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}
inline std::string Frame(FrameType type, char flags, uint32_t stream, std::string_view payload) {
  std::string frame = Word(static_cast<uint32_t>(payload.size())).substr(1);
  frame += static_cast<char>(type);
  frame += flags;
  return frame + Word(stream) + std::string(payload);
}
using Fields = std::vector<std::pair<std::string, std::string>>;
/// Header fields without compression; each name and value has less than 127 bytes.
inline std::string Headers(uint32_t stream, const Fields& fields, char flags = 0) {
  constexpr char kEndHeaders = 4;
  std::string block;
  for (const auto& [name, value] : fields) {
    block += '\0';
    block += static_cast<char>(name.size()) + name;
    block += static_cast<char>(value.size()) + value;
  }
  return Frame(kHeaders, static_cast<char>(flags | kEndHeaders), stream, block);
}
inline std::string Data(uint32_t stream, std::string_view bytes, char flags = 0) {
  return Frame(kData, flags, stream, bytes);
}
/// A gRPC message with the length that it claims.
inline std::string Message(std::string_view bytes, uint32_t length, char compressed = 0) {
  return compressed + Word(length) + std::string(bytes);
}
inline std::string Begin(uint32_t stream) {
  return Headers(stream, {{":status", "200"}, {"content-type", "application/grpc"}});
}
inline std::string Trailers(uint32_t stream, const std::string& status) {
  return Headers(stream, {{"grpc-status", status}, {"grpc-message", "as told"}}, kEndStream);
}
inline std::string Answer(uint32_t stream, std::string_view bytes) {
  return Begin(stream) + Data(stream, Message(bytes, static_cast<uint32_t>(bytes.size()))) +
         Trailers(stream, "0");
}
inline std::string Reset(uint32_t stream, uint32_t error) {
  return Frame(kReset, 0, stream, Word(error));
}
inline std::string GoAway(uint32_t last_stream) {
  return Frame(kGoAway, 0, 0, Word(last_stream) + Word(0));
}

/// A server of HTTP/2 that gives to each request the next of its answers, whatever they are. It
/// takes one connection at a time. After the last answer, it is silent.
class RawMaster {
 public:
  struct Reply {
    /// The bytes for a request on this stream.
    std::function<std::string(uint32_t stream)> bytes;
    /// Then it ends the connection.
    bool close = false;
    /// It does not wait for the end of the request.
    bool early = false;
  };

  explicit RawMaster(std::vector<Reply> replies) : replies_(replies.begin(), replies.end()) {
    listening_ = OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in self{};
    self.sin_family = AF_INET;
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(self);
    auto* const address = reinterpret_cast<sockaddr*>(&self);
    EXPECT_EQ(::bind(listening_.get(), address, size), 0);
    EXPECT_EQ(::listen(listening_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listening_.get(), address, &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(self.sin_port));
    EXPECT_EQ(::pipe2(stop_, O_CLOEXEC), 0);
    thread_ = std::thread([this] {
      while (Readable(listening_.get())) Serve();
    });
  }
  ~RawMaster() {
    ::close(stop_[1]);
    thread_.join();
    ::close(stop_[0]);
  }
  const std::string& address() const { return address_; }
  int connections() const { return connections_; }
  int requests() const { return requests_; }

 private:
  /// False: the test is over.
  bool Readable(int fd) const {
    pollfd fds[2] = {{fd, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    ::poll(fds, 2, -1);
    return fds[1].revents == 0;
  }
  /// False: the peer has ended the connection.
  bool Read(int fd, size_t bytes, std::string* into) const {
    into->clear();
    while (into->size() < bytes) {
      char buffer[1 << 14];
      if (!Readable(fd)) return false;
      const ssize_t got = ::recv(fd, buffer, std::min(bytes - into->size(), sizeof(buffer)), 0);
      if (got <= 0) return false;
      into->append(buffer, static_cast<size_t>(got));
    }
    return true;
  }
  void Serve() {
    const OwnedFd peer(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ++connections_;
    const std::string settings = Frame(kSettings, 0, 0, "");
    ::send(peer.get(), settings.data(), settings.size(), MSG_NOSIGNAL);
    std::string bytes;
    if (!Read(peer.get(), 24, &bytes)) return;  // the preface
    while (Read(peer.get(), 9, &bytes)) {
      const auto at = [&bytes](size_t i) { return static_cast<uint8_t>(bytes[i]); };
      const size_t length = size_t{at(0)} << 16 | size_t{at(1)} << 8 | at(2);
      const char type = bytes[3];
      const bool ended = (at(4) & kEndStream) != 0 && (type == kData || type == kHeaders);
      const uint32_t stream = uint32_t{at(7)} << 8 | at(8);
      if (!Read(peer.get(), length, &bytes)) return;
      if (type == kHeaders) ++requests_;
      if (replies_.empty()) continue;
      if (!ended && !(type == kHeaders && replies_.front().early)) continue;
      const Reply reply = replies_.front();
      replies_.pop_front();
      const std::string answer = reply.bytes(stream);
      ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      if (!reply.close) continue;
      // Without a reset: what is on its way is read until the peer closes, too.
      ::shutdown(peer.get(), SHUT_WR);
      while (Read(peer.get(), 1, &bytes)) continue;
      return;
    }
  }

  std::deque<Reply> replies_;
  OwnedFd listening_;
  std::string address_;
  int stop_[2];
  std::atomic<int> connections_ = 0;
  std::atomic<int> requests_ = 0;
  std::thread thread_;
};

}  // namespace muster::sdk::testing
