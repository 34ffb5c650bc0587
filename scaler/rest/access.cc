#include "scaler/rest/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/address.h"
#include "base/token_file.h"
#include "scaler/rest/internal/shown.h"

namespace muster::scaler::rest {
namespace {

Problem Refused(int status, std::string code, std::string detail) {
  return {.status = status, .code = std::move(code), .detail = std::move(detail), .errors = {}};
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

constexpr std::array<std::string_view, 3> kLoopbackNames{"127.0.0.1", "localhost", "[::1]"};

/// Under TLS, a loopback name with any port may be the end of a tunnel. A browser accepts our
/// certificate only under our own names, so this does not help DNS rebinding.
bool IsOfATunnel(std::string_view scheme, std::string_view host) {
  if (scheme != "https://") return false;
  const size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == host.size()) return false;
  const std::string_view port = host.substr(colon + 1);
  const std::string name = Lower(host.substr(0, colon));
  return port.find_first_not_of("0123456789") == std::string_view::npos &&
         std::ranges::count(kLoopbackNames, name) > 0;
}

}  // namespace

AccessControl::AccessControl(uint16_t port, const std::vector<std::string>& hosts, bool tls)
    : scheme_(tls ? "https://" : "http://") {
  for (const std::string& host : hosts) {
    if (!IsWildcardHost(host)) hosts_.push_back(Lower(JoinHostPort(host, port)));
  }
  for (const std::string_view name : kLoopbackNames) {
    hosts_.push_back(fmt::format("{}:{}", name, port));
  }
}

bool AccessControl::IsOurs(std::string_view host) const {
  return std::ranges::count(hosts_, Lower(host)) > 0;
}

std::optional<Problem> AccessControl::CheckHost(const Request& request) const {
  if (request.CountOf("host") > 1) {
    return Refused(400, "malformed", "the request has more than one Host header");
  }
  const std::string_view host = request.Header("host").value_or("");
  if (IsOurs(host) || IsOfATunnel(scheme_, host)) return std::nullopt;
  const std::string_view tunnel = scheme_ == "https://"
                                      ? ", or a tunnel that ends at 127.0.0.1, localhost or [::1]"
                                      : " (a tunnel must have the same port on both ends)";
  return Refused(421, "wrong-host",
                 fmt::format("Host is '{}', but this server is {}. Use that address{}", Shown(host),
                             hosts_[0], tunnel));
}

bool AccessControl::HasToken(const Request& request) const {
  constexpr std::string_view kScheme = "bearer ";
  if (token_.empty() || request.CountOf("authorization") != 1) return false;
  const std::string_view given = *request.Header("authorization");
  return Lower(given.substr(0, kScheme.size())) == kScheme &&
         SameSecret(given.substr(kScheme.size()), token_);
}

std::optional<Problem> AccessControl::CheckSite(const Request& request) const {
  if (const auto site = request.Header("sec-fetch-site")) {
    if (*site != "same-origin" && *site != "none") {
      return Refused(403, "other-site",
                     fmt::format("another web site asks for this action, so it is refused "
                                 "(Sec-Fetch-Site: {})",
                                 Shown(*site)));
    }
  }
  if (const auto origin = request.Header("origin")) {
    const std::string_view host =
        origin->starts_with(scheme_) ? origin->substr(scheme_.size()) : std::string_view();
    // A page that came through a tunnel is ours only if the request came through the same tunnel.
    // On the machine where the tunnel begins, another program may have our names.
    const std::string_view asked = request.Header("host").value_or("");
    const bool same = IsOurs(asked) ? IsOurs(host) : Lower(host) == Lower(asked);
    if (!same) {
      return Refused(
          403, "other-site",
          fmt::format("another web site asks for this action, so it is refused (Origin: {})",
                      Shown(*origin)));
    }
  }
  return std::nullopt;
}

std::optional<Problem> AccessControl::CheckAccess(const Request& request, RouteKind kind) const {
  if (kind != RouteKind::kOpen && !HasToken(request)) {
    const bool given = request.Header("authorization").has_value();
    return Refused(401, "token",
                   given ? "the token is not the one in the file scaler/token of the state "
                           "directory"
                         : "send 'Authorization: Bearer TOKEN'; the token is in the file "
                           "scaler/token of the state directory");
  }
  return kind == RouteKind::kAct ? CheckSite(request) : std::nullopt;
}

}  // namespace muster::scaler::rest
