#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Addresses of the form "host:port". A host is a name, an IPv4 address, or an IPv6 address. If a
/// port follows an IPv6 address, the address is in brackets.
namespace muster {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

/// kInvalidArgument unless `address` is "host:port".
absl::StatusOr<HostPort> ParseHostPort(std::string_view address);
/// "::1", 80 -> "[::1]:80".
std::string JoinHostPort(std::string_view host, uint16_t port);
/// "[::1]" -> "::1". Other hosts stay as they are.
std::string WithoutBrackets(std::string_view host);
/// OK for a name or an address, in brackets or not. kInvalidArgument says what is wrong.
absl::Status CheckHost(std::string_view host);
/// True for "0.0.0.0" and "::". A process that listens there listens at every address of its
/// machine.
bool IsWildcardHost(std::string_view host);
/// True for "localhost", 127.0.0.0/8 and "::1", which no other machine can reach.
bool IsLoopbackHost(std::string_view host);
/// True if the host is an address, so that no name service is asked.
bool IsNumericHost(std::string_view host);

/// Ports that a process may listen at. If both are 0, a free one.
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};
/// "7100-7199", "7100", or "0" for a free one. kInvalidArgument says what is wrong.
absl::StatusOr<PortRange> ParsePortRange(std::string_view text);

/// The addresses of a host, as numbers, best first. Blocks while it asks the name service.
/// kUnavailable if a name has no address (yet): ask again later.
absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host);
/// The source address of packets from this machine to `address`. Nothing is sent. kUnavailable if
/// the name has no address yet, or if there is no route.
absl::StatusOr<std::string> LocalAddressTowards(const std::string& address);

/// Makes the kernel notice within about 20 s that the peer of a TCP connection has vanished,
/// whether the connection is idle or has unacknowledged data. It also keeps idle connections alive
/// in firewalls. Does nothing for other kinds of sockets.
void DetectVanishedPeer(int fd);

}  // namespace muster
