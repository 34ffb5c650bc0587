#include "kubernetes/config/cluster_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "base/text.h"

namespace muster::kubernetes {
namespace {

constexpr uint64_t kPemBytesMax = 1 << 20;

absl::Status BadUrl(std::string_view url, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("the server \"{}\" cannot be used: {}", Excerpt(url, 200), why));
}

/// Splits "host:port", "host", "[address]:port"; the port is empty if there is none.
std::pair<std::string_view, std::string_view> SplitAuthority(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return {};
    return {text.substr(1, end - 1), rest.empty() ? rest : rest.substr(1)};
  }
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

std::string ClusterAccess::Url() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("https://{}{}{}:{}{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port,
                     path_prefix);
}

absl::StatusOr<ClusterAccess> ParseServerUrl(std::string_view url) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme)) return BadUrl(url, "it must begin with https://");
  const std::string_view rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view prefix = rest.substr(slash);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  const auto [host, port] = SplitAuthority(rest.substr(0, slash));
  const bool plain = std::all_of(rest.begin(), rest.end(), [](unsigned char c) {
    return c > ' ' && c < 0x7f && c != '@' && c != '?' && c != '#';
  });
  if (host.empty() || !plain) return BadUrl(url, "there is no host in it, or more than a host");
  ClusterAccess access{.host = std::string(host), .path_prefix = std::string(prefix)};
  if (!port.empty()) {
    const char* end = port.data() + port.size();
    const auto [stopped, error] = std::from_chars(port.data(), end, access.port);
    if (error != std::errc() || stopped != end || access.port == 0) {
      return BadUrl(url, "its port is no number from 1 to 65535");
    }
  }
  return access;
}

absl::StatusOr<std::string> ReadPem(const PemSource& source) {
  if (!source.path.empty()) return ReadFile(source.path, kPemBytesMax);
  return source.text;
}

}  // namespace muster::kubernetes
