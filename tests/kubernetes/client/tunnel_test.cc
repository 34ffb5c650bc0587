#include "kubernetes/client/tunnel.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "tests/kubernetes/client/fake_api_server.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using testing::FakeApiServer;
using testing::FakeRequest;
using testing::FakeWire;
using ::testing::HasSubstr;

std::string OnChannel(char channel, const std::string& bytes) {
  return std::string(1, channel) + bytes;
}

/// Says the name of the pod in the request, then waits for the end.
void SayTarget(const FakeRequest& request, FakeWire& wire) {
  ASSERT_TRUE(wire.AcceptWebSocket("v4.channel.k8s.io"));
  wire.SendMessage(OnChannel(0, std::string("\x01\x1c", 2)));
  wire.SendMessage(OnChannel(0, request.target));
  while (wire.ReadMessage()) {
  }
}

/// A connection to a port of this machine.
class LocalConnection {
 public:
  explicit LocalConnection(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~LocalConnection() { ::close(fd_); }
  /// One piece; empty: the other side has ended.
  std::string Read() const {
    std::array<char, 4096> piece{};
    const ssize_t got = ::read(fd_, piece.data(), piece.size());
    return {piece.data(), got > 0 ? static_cast<size_t>(got) : 0};
  }

 private:
  int fd_;
};

struct TunnelToFake {
  explicit TunnelToFake(TunnelOptions options)
      : server(SayTarget), credentials(server.Access(), &clock) {
    options.ns = "team";
    options.port = 7171;
    tunnel = *Tunnel::Open(&credentials, &clock, std::move(options));
  }

  FakeApiServer server;
  SystemClock clock;
  CredentialSource credentials;
  std::unique_ptr<Tunnel> tunnel;
};

TEST(Tunnel, FindsThePodForEachConnection) {
  std::atomic<int> pod = 0;
  TunnelToFake fake({.find_pod = [&]() -> absl::StatusOr<std::string> {
    return "ads-" + std::to_string(pod++);
  }});
  const LocalConnection first(fake.tunnel->port());
  EXPECT_EQ(first.Read(), "/api/v1/namespaces/team/pods/ads-0/portforward?ports=7171");
  const LocalConnection second(fake.tunnel->port());
  EXPECT_EQ(second.Read(), "/api/v1/namespaces/team/pods/ads-1/portforward?ports=7171");
}

TEST(Tunnel, SaysWhyThereIsNoPod) {
  TunnelToFake fake({.find_pod = []() -> absl::StatusOr<std::string> {
    return absl::UnavailableError("the pod is pending");
  }});
  const LocalConnection connection(fake.tunnel->port());
  EXPECT_EQ(connection.Read(), "");
  // The error is kept before or after the socket is closed, so only a second connection, which
  // comes after it, is sure to find it.
  EXPECT_EQ(LocalConnection(fake.tunnel->port()).Read(), "");
  EXPECT_TRUE(fake.server.requests().empty());
}

TEST(Tunnel, CarriesABoundedNumber) {
  TunnelToFake fake(
      {.find_pod = []() -> absl::StatusOr<std::string> { return "ads"; }, .connections_max = 1});
  const LocalConnection first(fake.tunnel->port());
  EXPECT_NE(first.Read(), "");
  const LocalConnection second(fake.tunnel->port());
  EXPECT_EQ(second.Read(), "");
  EXPECT_THAT(std::string(fake.tunnel->last_error().message()), HasSubstr("at most 1 connections"));
}

TEST(Tunnel, EndsItsConnections) {
  TunnelToFake fake({.find_pod = []() -> absl::StatusOr<std::string> { return "ads"; }});
  const LocalConnection connection(fake.tunnel->port());
  EXPECT_NE(connection.Read(), "");
  fake.tunnel.reset();
  EXPECT_EQ(connection.Read(), "");
}

}  // namespace
}  // namespace muster::kubernetes
