#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/descriptors.h"
#include "collectives/frames.h"

namespace muster::collectives::testing {

/// One end of a connection in a test's hands, which may break every rule.
class FakeMember {
 public:
  /// Connects to "unix:/path".
  static FakeMember ConnectTo(const std::string& address) {
    FakeMember member(OwnedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
    const sockaddr_un to = AddressOf(address.substr(5));
    MUSTER_CHECK(::connect(member.fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) ==
                 0);
    return member;
  }
  /// Listens at a path, for one connection.
  static OwnedFd ListenAt(const std::string& path) {
    OwnedFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un at = AddressOf(path);
    MUSTER_CHECK(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0);
    MUSTER_CHECK(::listen(listener.get(), 10) == 0);
    return listener;
  }
  static FakeMember AcceptFrom(const OwnedFd& listener) {
    return FakeMember(OwnedFd(::accept(listener.get(), nullptr, nullptr)));
  }

  void Send(FrameHeader header, std::string_view payload = {}) {
    header.payload_bytes = payload.size();
    std::array<std::byte, kFrameHeaderBytes> bytes;
    EncodeFrameHeader(header, bytes);
    SendBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    SendBytes(payload);
  }
  void SendBytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the other end has closed
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  /// The next frame's payload; its header is in `header`. False: the connection has ended.
  bool Receive(FrameHeader* header, std::string* payload) {
    std::string bytes(kFrameHeaderBytes, 0);
    if (!ReceiveBytes(&bytes)) return false;
    *header = DecodeFrameHeader(ConstHeaderBytes(reinterpret_cast<const std::byte*>(bytes.data()),
                                                 kFrameHeaderBytes))
                  .value();
    payload->assign(header->payload_bytes, 0);
    return ReceiveBytes(payload);
  }
  /// Says hello, and returns the answer.
  HelloReply SayHello(const Hello& hello) {
    Send({.kind = FrameKind::kHello}, EncodeMessage(hello));
    FrameHeader header;
    std::string payload;
    MUSTER_CHECK(Receive(&header, &payload) && header.kind == FrameKind::kHelloReply);
    return DecodeMessage<HelloReply>(payload).value();
  }

  int fd() const { return fd_.get(); }

 private:
  explicit FakeMember(OwnedFd fd) : fd_(std::move(fd)) {}
  static sockaddr_un AddressOf(const std::string& path) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
  }
  bool ReceiveBytes(std::string* into) {
    size_t got = 0;
    while (got < into->size()) {
      const ssize_t bytes = ::recv(fd_.get(), into->data() + got, into->size() - got, 0);
      if (bytes <= 0) return false;
      got += static_cast<size_t>(bytes);
    }
    return true;
  }

  OwnedFd fd_;
};

}  // namespace muster::collectives::testing
