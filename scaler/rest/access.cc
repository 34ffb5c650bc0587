#include "scaler/rest/access.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

AccessControl::AccessControl(uint16_t port) {
  for (const char* name : {"127.0.0.1", "localhost", "[::1]"}) {
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
  if (IsOurs(host)) return std::nullopt;
  return Refused(421, "wrong-host",
                 fmt::format("Host is '{}', but this server is {}. Use that address (a tunnel "
                             "must have the same port on both ends)",
                             Shown(host), hosts_[0]));
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
    constexpr std::string_view kScheme = "http://";
    if (!origin->starts_with(kScheme) || !IsOurs(origin->substr(kScheme.size()))) {
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
