#include "base/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr size_t kHostBytesMax = 253;

/// A list of addresses that frees itself.
struct Found {
  addrinfo* first = nullptr;
  ~Found() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

absl::Status Resolve(const std::string& host, const char* port, Found* found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(host.c_str(), port, &hints, &found->first);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("the name '{}' has no address (yet): {}", host, ::gai_strerror(error)));
}

std::string NumberOf(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (::getnameinfo(address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

}  // namespace

std::string WithoutBrackets(std::string_view host) {
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return std::string(host);
}

absl::Status CheckHost(std::string_view host) {
  const std::string bare = WithoutBrackets(host);
  if (IsNumericHost(bare)) return absl::OkStatus();
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  // A host of only digits and dots is an address with a mistake, and not a name.
  const bool digits = bare.find_first_not_of("0123456789.") == std::string::npos;
  if (bare == host && !digits && bare.size() <= kHostBytesMax && std::ranges::all_of(bare, fits)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not a host: write a name, an IPv4 address, or an IPv6 address", host));
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  const char* const end = address.data() + address.size();
  const char* const begin = colon == std::string_view::npos ? end : address.data() + colon + 1;
  const auto [rest, error] = std::from_chars(begin, end, port);
  const std::string_view host = address.substr(0, colon == std::string_view::npos ? 0 : colon);
  // An IPv6 address without brackets would be read as a shorter one with a port.
  const bool bare_v6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  if (error != std::errc() || rest != end || port > UINT16_MAX || host.empty() || bare_v6) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not host:port, such as 127.0.0.1:26500 or [fd00::1]:26500", address));
  }
  MUSTER_RETURN_IF_ERROR(CheckHost(host));
  return HostPort{WithoutBrackets(host), static_cast<uint16_t>(port)};
}

absl::StatusOr<PortRange> ParsePortRange(std::string_view text) {
  const auto parse = [](std::string_view number, uint16_t* port) {
    const char* const end = number.data() + number.size();
    const auto [rest, error] = std::from_chars(number.data(), end, *port);
    return error == std::errc() && rest == end;
  };
  const size_t dash = text.find('-');
  PortRange range;
  bool fits = parse(text.substr(0, dash), &range.first);
  range.last = range.first;
  if (dash != std::string_view::npos) {
    fits = fits && parse(text.substr(dash + 1), &range.last) && range.first > 0 &&
           range.first <= range.last;
  }
  if (fits) return range;
  return absl::InvalidArgumentError(fmt::format(
      "'{}' is no range of ports: write 7100-7199, one port, or 0 for a free one", text));
}

std::string JoinHostPort(std::string_view host, uint16_t port) {
  const std::string bare = WithoutBrackets(host);
  return bare.find(':') == std::string::npos ? fmt::format("{}:{}", bare, port)
                                             : fmt::format("[{}]:{}", bare, port);
}

bool IsWildcardHost(std::string_view host) {
  const std::string bare = WithoutBrackets(host);
  in_addr v4{};
  if (::inet_pton(AF_INET, bare.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, bare.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6) != 0;
}

bool IsLoopbackHost(std::string_view host) {
  if (host == "localhost") return true;
  const std::string bare = WithoutBrackets(host);
  in_addr v4{};
  if (::inet_pton(AF_INET, bare.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, bare.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

bool IsNumericHost(std::string_view host) {
  const std::string bare = WithoutBrackets(host);
  in6_addr any{};
  // In an address of one link, '%' and the interface follow.
  const std::string v6 = bare.substr(0, bare.find('%'));
  return ::inet_pton(AF_INET, bare.c_str(), &any) == 1 ||
         ::inet_pton(AF_INET6, v6.c_str(), &any) == 1;
}

absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host) {
  Found found;
  MUSTER_RETURN_IF_ERROR(Resolve(WithoutBrackets(host), nullptr, &found));
  std::vector<std::string> numbers;
  for (const addrinfo* each = found.first; each != nullptr; each = each->ai_next) {
    numbers.push_back(NumberOf(each->ai_addr, each->ai_addrlen));
  }
  return numbers;
}

absl::StatusOr<std::string> LocalAddressTowards(const std::string& address) {
  MUSTER_ASSIGN_OR_RETURN(const HostPort to, ParseHostPort(address));
  Found found;
  MUSTER_RETURN_IF_ERROR(Resolve(to.host, std::to_string(to.port).c_str(), &found));
  int error = ENETUNREACH;
  for (const addrinfo* each = found.first; each != nullptr; each = each->ai_next) {
    const int fd = ::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    absl::Cleanup close_fd = [fd] { ::close(fd); };
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    auto* const as_address = reinterpret_cast<sockaddr*>(&own);
    if (::connect(fd, each->ai_addr, each->ai_addrlen) == 0 &&
        ::getsockname(fd, as_address, &size) == 0) {
      return NumberOf(as_address, size);
    }
    error = errno;
  }
  return absl::UnavailableError(fmt::format("this machine has no address that reaches {}: {}",
                                            address, std::strerror(error)));
}

void DetectVanishedPeer(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return;
  if (own.ss_family != AF_INET && own.ss_family != AF_INET6) return;
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

}  // namespace muster
