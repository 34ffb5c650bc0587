#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/ring_memory.h"
#include "net/tls_engine.h"
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
  /// Connects to "unix:/path", to "ring:/path" (the same socket, and shared memory from its hello
  /// on), or to "127.0.0.1:port"; connected() says whether it worked.
  /// `receive_buffer`: bytes that the kernel keeps for it; 0: its default.
  /// `tls`: null for plain text; otherwise it shakes hands at once.
  explicit WireClient(const std::string& address, int receive_buffer = 0, ssl_ctx_st* tls = nullptr)
      : receive_buffer_(receive_buffer), wants_rings_(address.starts_with("ring:")) {
    if (address.starts_with("unix:") || wants_rings_) {
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
    if (tls != nullptr) ShakeHands(tls);
  }
  ~WireClient() {
    if (fd_ >= 0) ::close(fd_);
  }
  WireClient(const WireClient&) = delete;
  WireClient& operator=(const WireClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  net::TlsEngine* tls() { return tls_.get(); }

  void SendBytes(std::string_view bytes) {
    if (writer_) return SendToRing(bytes);
    if (!tls_) return SendPlain(bytes);
    static_cast<void>(tls_->Write(std::as_bytes(std::span(bytes))));
    SendOutput();
  }
  void SendPlain(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  /// Sends the frame; the sizes in `header` are filled in.
  void Send(const wire::Header& header, std::string_view directory,
            std::span<const uint64_t> keys = {}, std::string_view values = {}) {
    SendBytes(FrameOf(header, directory, keys, values));
  }
  static std::string FrameOf(wire::Header header, std::string_view directory,
                             std::span<const uint64_t> keys, std::string_view values) {
    header.directory_bytes = static_cast<uint32_t>(directory.size());
    header.keys = keys.size();
    header.value_bytes = values.size();
    std::array<std::byte, wire::kHeaderBytes> bytes;
    wire::EncodeHeader(header, bytes);
    std::string frame(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    frame.append(directory);
    frame.append(reinterpret_cast<const char*>(keys.data()), keys.size_bytes());
    frame.append(values);
    return frame;
  }

  void SendHello(const std::string& job, const std::string& job_id = "id-1") {
    wire::Header header;
    header.kind = wire::Kind::kHello;
    Send(header, wire::EncodeHello({.job = job,
                                    .job_id = job_id,
                                    .peer = "worker-0",
                                    .software = "test",
                                    .ring_bytes_max = wants_rings_ ? kRingBytes : 0}));
  }
  /// True if it has switched to shared memory.
  bool in_rings() const { return rings_.has_value(); }
  net::RingMemory& rings() { return *rings_; }
  /// Bytes of its ring that the server has given back.
  size_t ring_room() { return writer_->Room()->size(); }
  void ShutdownSend() { ::shutdown(fd_, SHUT_WR); }
  void Ring() { static_cast<void>(::send(fd_, "x", 1, MSG_NOSIGNAL)); }

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
    if (header->kind == wire::Kind::kHelloReply && !EnterRings(frame.directory)) return {};
    return frame;
  }

  /// The next so many bytes, or what comes before the end of the stream.
  std::string ReceiveBytes(size_t bytes) {
    std::string text(bytes, '\0');
    if (!ReadAll(text.data(), bytes)) text.clear();
    return text;
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
  void ShakeHands(ssl_ctx_st* context) {
    tls_ = std::make_unique<net::TlsEngine>(context, net::TlsEngine::Side::kClient);
    while (tls_->Handshake() == net::TlsEngine::Step::kNeedsBytes) {
      SendOutput();
      ReceiveInput();
    }
    SendOutput();
  }
  void SendOutput() {
    const std::span<const std::byte> output = tls_->output();
    SendPlain({reinterpret_cast<const char*>(output.data()), output.size()});
    tls_->Sent(output.size());
  }
  void ReceiveInput() {
    const std::span<std::byte> room = tls_->Room();
    const ssize_t got = ::recv(fd_, room.data(), room.size(), 0);
    if (got <= 0) return tls_->ReceivedEnd();
    tls_->Received(static_cast<size_t>(got));
  }
  bool ReadTls(char* to, size_t bytes) {
    while (bytes > 0) {
      size_t got = 0;
      const auto step = tls_->Read(std::as_writable_bytes(std::span(to, bytes)), &got);
      if (step == net::TlsEngine::Step::kNeedsBytes) {
        ReceiveInput();
      } else if (step != net::TlsEngine::Step::kDone) {
        return false;
      }
      to += got;
      bytes -= got;
    }
    return true;
  }
  bool EnterRings(const std::string& directory) {
    const auto reply = wire::DecodeHelloReply(directory);
    if (!reply.ok()) return false;
    if (reply->ring_bytes == 0) return true;
    pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
    ::poll(&readable, 1, 20'000);
    auto memory = net::ReceiveDescriptor(fd_);
    if (!memory.ok()) return false;
    auto rings = net::RingMemory::Open(*std::move(memory), reply->ring_bytes);
    if (!rings.ok()) return false;
    rings_ = *std::move(rings);
    writer_.emplace(rings_->openers());
    reader_.emplace(rings_->makers());
    return true;
  }
  /// False: the peer is gone.
  bool AwaitBell() {
    char bells[64];
    return ::recv(fd_, bells, sizeof(bells), 0) > 0;
  }
  void SendToRing(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto room = writer_->Room();
      if (!room.ok()) return;
      const size_t count = std::min(room->size(), bytes.size());
      std::memcpy(room->data(), bytes.data(), count);
      bytes.remove_prefix(count);
      if (writer_->Publish(count)) Ring();
      if (!bytes.empty() && *writer_->Sleep() && !AwaitBell()) return;
    }
  }
  bool ReadRing(char* to, size_t bytes) {
    for (bool gone = false; bytes > 0;) {
      const auto there = reader_->Bytes();
      if (!there.ok() || (gone && there->empty())) return false;
      const size_t count = std::min(there->size(), bytes);
      std::memcpy(to, there->data(), count);
      to += count;
      bytes -= count;
      reader_->Pass(count);
      if (reader_->GiveBack(reader_->passed())) Ring();
      if (bytes > 0 && !gone && *reader_->Sleep()) gone = !AwaitBell();
    }
    return true;
  }
  bool ReadAll(void* to, size_t bytes) {
    auto* at = static_cast<char*>(to);
    if (reader_) return ReadRing(at, bytes);
    if (tls_) return ReadTls(at, bytes);
    while (bytes > 0) {
      const ssize_t got = ::recv(fd_, at, bytes, 0);
      if (got <= 0) return false;
      at += got;
      bytes -= static_cast<size_t>(got);
    }
    return true;
  }

  static constexpr uint32_t kRingBytes = 256u << 10;

  const int receive_buffer_;
  const bool wants_rings_;
  int fd_ = -1;
  std::unique_ptr<net::TlsEngine> tls_;
  std::optional<net::RingMemory> rings_;
  std::optional<net::RingWriter> writer_;
  std::optional<net::RingReader> reader_;
};

}  // namespace muster::ps::testing
