#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/net/client_fixture.h"
#include "worker_sdk/net/internal/lane_connection.h"

namespace muster::sdk {

/// One connection on an event loop that the test turns, with a clock that moves when told to. The
/// test plays the server on a UNIX socket.
class LinkFixture : public ::testing::Test {
 protected:
  /// `ring_bytes`: what the server offers in its greeting; none: the test connects and greets.
  explicit LinkFixture(DataClient::Options options, std::optional<uint32_t> ring_bytes = 0)
      : options_(std::move(options)), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un self{};
    self.sun_family = AF_UNIX;
    std::strncpy(self.sun_path, dir_.File("lane").c_str(), sizeof(self.sun_path) - 1);
    MUSTER_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&self), sizeof(self)) == 0);
    MUSTER_CHECK(::listen(listener_, 1) == 0);
    if (!ring_bytes.has_value()) return;
    Connect();
    Greet(*ring_bytes);
  }
  ~LinkFixture() override {
    Disconnect();
    ::close(listener_);
  }
  void Disconnect() {
    if (connection_ != nullptr) connection_->Close("the test ends");
    Turn();
    HangUp();
  }
  /// The server is gone.
  void HangUp() {
    if (peer_ >= 0) ::close(std::exchange(peer_, -1));
    Turn();
  }

  void Turn() {
    io_.restart();
    io_.poll();
  }
  std::string Read(size_t bytes) {
    std::string into(bytes, '\0');
    for (size_t done = 0; done < bytes;) {
      Turn();
      const ssize_t n = ::recv(peer_, into.data() + done, bytes - done, MSG_DONTWAIT);
      MUSTER_CHECK(n > 0 || (n < 0 && errno == EAGAIN));
      if (n > 0) done += static_cast<size_t>(n);
    }
    Turn();
    return into;
  }
  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(peer_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      MUSTER_CHECK(n > 0 || (n < 0 && errno == EAGAIN));
      if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
      Turn();
    }
  }
  wire::Header ReadHeader() {
    const std::string bytes = Read(wire::kHeaderBytes);
    return *wire::DecodeHeader(std::as_bytes(std::span(bytes)).first<wire::kHeaderBytes>());
  }
  /// A new connection, until the server has its hello.
  void Connect() {
    Disconnect();
    net_internal::LaneConnection::Target target{lane_, "ps-0.0", {"unix:" + dir_.File("lane")}};
    connection_ = std::make_shared<net_internal::LaneConnection>(
        io_.get_executor(), std::move(target), &options_, &collector_, &sharing_, &clock_,
        [](net_internal::LaneConnection*) {});
    connection_->Start();
    Turn();
    peer_ = ::accept(listener_, nullptr, nullptr);
    MUSTER_CHECK(peer_ >= 0);
    hello_ = wire::DecodeHello(Read(ReadHeader().directory_bytes)).value();
  }
  void Greet(uint32_t ring_bytes) {
    wire::Header reply;
    reply.kind = wire::Kind::kHelloReply;
    Write(AnswerFrame(reply, wire::EncodeHelloReply({1, kPartitions, 0, 1, ring_bytes}), ""));
  }

  const LaneAddress lane_{ServerId(0), ServerIncarnation(1), 0};
  muster::testing::TempDir dir_;
  muster::testing::FakeClock clock_;
  DataClient::Options options_;
  wire::Hello hello_;
  net_internal::LaneConnection::Sharing sharing_;
  Collector collector_;
  boost::asio::io_context io_;
  int listener_, peer_ = -1;
  std::shared_ptr<net_internal::LaneConnection> connection_;
};

}  // namespace muster::sdk
