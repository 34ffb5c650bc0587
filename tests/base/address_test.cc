#include "base/address.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::StatusIs;

TEST(AddressTest, HostAndPortOfEveryKind) {
  EXPECT_EQ(ParseHostPort("127.0.0.1:80").value(), (HostPort{"127.0.0.1", 80}));
  EXPECT_EQ(ParseHostPort("[fd00::1]:65535").value(), (HostPort{"fd00::1", 65535}));
  EXPECT_EQ(ParseHostPort("gpu-1.example:0").value(), (HostPort{"gpu-1.example", 0}));
  EXPECT_EQ(JoinHostPort("fd00::1", 80), "[fd00::1]:80");
  EXPECT_EQ(JoinHostPort("[fd00::1]", 80), "[fd00::1]:80");
  EXPECT_EQ(JoinHostPort("gpu-1", 80), "gpu-1:80");
}

TEST(AddressTest, WhatIsNoAddressIsRefused) {
  for (const char* text : {"", ":80", "host", "host:", "host:65536", "host:8x", "fd00::1:80",
                           "a b:80", "10.0.0:80", "10.0.0.256:80", "[name]:80", "a/b:80"}) {
    EXPECT_THAT(ParseHostPort(text), StatusIs(absl::StatusCode::kInvalidArgument, _)) << text;
  }
}

TEST(AddressTest, Ports) {
  EXPECT_EQ(ParsePortRange("7100-7199").value(), (PortRange{7100, 7199}));
  EXPECT_EQ(ParsePortRange("7100").value(), (PortRange{7100, 7100}));
  EXPECT_EQ(ParsePortRange("0").value(), (PortRange{0, 0}));
  for (const char* text : {"", "7199-7100", "0-10", "1-", "-1", "1-65536", "a", "1-2-3"}) {
    EXPECT_THAT(ParsePortRange(text), StatusIs(absl::StatusCode::kInvalidArgument, _)) << text;
  }
}

TEST(AddressTest, Wildcards) {
  for (const char* host : {"0.0.0.0", "::", "[::]", "0::0"}) EXPECT_TRUE(IsWildcardHost(host));
  for (const char* host : {"127.0.0.1", "::1", "[::1]", "name"}) EXPECT_FALSE(IsWildcardHost(host));
}

TEST(AddressTest, LoopbackHosts) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.8.7", "[::1]", "::1"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
  for (const char* host : {"", "0.0.0.0", "128.0.0.1", "10.0.0.1", "[::]", "[", "[]",
                           "[::ffff:127.0.0.1]", "127.0.0.1.example.org", "example.org"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
}

TEST(AddressTest, ANameThatHasNoAddressMayGetOneLater) {
  EXPECT_THAT(ResolveHost("no-such-name.invalid"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no-such-name.invalid")));
  EXPECT_THAT(LocalAddressTowards("no-such-name.invalid:80"),
              StatusIs(absl::StatusCode::kUnavailable, _));
  EXPECT_THAT(ResolveHost("localhost").value(), Contains("127.0.0.1"));
}

TEST(AddressTest, TheAddressTowardsLoopbackIsLoopback) {
  EXPECT_EQ(LocalAddressTowards("127.0.0.1:9").value(), ("127.0.0.1"));
}

TEST(AddressTest, AVanishedPeerIsNoticedByTheKernel) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  DetectVanishedPeer(fd);
  int alive = 0;
  int timeout_ms = 0;
  socklen_t size = sizeof(alive);
  ::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &alive, &size);
  ::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, &size);
  EXPECT_NE(alive, 0);
  EXPECT_EQ(timeout_ms, 20'000);
  ::close(fd);
}

}  // namespace
}  // namespace muster
