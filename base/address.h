#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Addresses of the form "host:port". A host is a name, an IPv4 address, or an IPv6 address, which
/// is in brackets wherever a port follows it.
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
/// "[::1]" -> "::1"; others as they are.
std::string WithoutBrackets(std::string_view host);
/// OK for a name or an address, in brackets or not. kInvalidArgument says what is wrong.
absl::Status CheckHost(std::string_view host);
/// "0.0.0.0" or "::": a process that listens there listens at every address of its machine.
bool IsWildcardHost(std::string_view host);
/// "localhost", 127.0.0.0/8 and "::1": no other machine reaches it.
bool IsLoopbackHost(std::string_view host);
/// True if the host is an address, so that no name service is asked.
bool IsNumericHost(std::string_view host);

/// Ports that a process may listen at; both 0: a free one.
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};
/// "7100-7199", "7100", or "0" for a free one. kInvalidArgument says what is wrong.
absl::StatusOr<PortRange> ParsePortRange(std::string_view text);

/// The addresses of a host, as numbers, best first. Blocks while the name service is asked.
/// kUnavailable for a name that has no address (yet): ask again later.
absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host);
/// The address that packets of this machine to `address` carry as their source; nothing is sent.
/// kUnavailable if the name has no address yet, or if there is no route.
absl::StatusOr<std::string> LocalAddressTowards(const std::string& address);

/// Makes the kernel notice within about 20 s that the peer of a TCP connection is gone without a
/// word, whether the connection is idle or has unacknowledged data; also keeps idle connections
/// alive in firewalls. Other kinds of sockets are left alone.
void DetectVanishedPeer(int fd);

}  // namespace muster
