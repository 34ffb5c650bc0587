#include "scaler/rest/rest_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "scaler/rest/internal/shown.h"

namespace muster::scaler::rest {
namespace {

Response NotFound(const Request& request) {
  return ToResponse({.status = 404,
                     .code = "no-route",
                     .detail = fmt::format("there is no route {}; /openapi.json has all routes",
                                           Shown(request.target)),
                     .errors = {}});
}

Response NotAllowed(const Request& request, const std::string& allowed) {
  Response response =
      ToResponse({.status = 405,
                  .code = "method",
                  .detail = fmt::format("{} is not possible for {}, which takes {}",
                                        Shown(request.method), Shown(request.target), allowed),
                  .errors = {}});
  response.headers.emplace_back("Allow", allowed);
  return response;
}

bool Reads(std::string_view method) {
  return method == "GET" || method == "HEAD";
}

}  // namespace

RestService::RestService(uint16_t port, TokenReader read_token, RestLimits limits,
                         std::vector<StaticFile> files, TimePoint now,
                         const std::vector<std::string>& hosts, bool tls)
    : access_(port, hosts, tls),
      read_token_(std::move(read_token)),
      limits_(limits),
      with_token_(limits.with_token, now),
      without_token_(limits.without_token, now) {
  for (const StaticFile& file : files) files_.emplace(file.path, file);
}

std::optional<Problem> RestService::CheckRate(bool has_token, RateLimiter* connection,
                                              TimePoint now) {
  // If one bucket is empty, the other one loses a token all the same. That only makes the limit
  // stricter.
  const auto own = connection->Take(now);
  const auto all = (has_token ? with_token_ : without_token_).Take(now);
  if (!own && !all) return std::nullopt;
  const auto wait = std::max(own.value_or(std::chrono::nanoseconds(0)),
                             all.value_or(std::chrono::nanoseconds(0)));
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  return Problem{.status = 429,
                 .code = "too-many-requests",
                 .detail = fmt::format("{}: try again in {} s",
                                       own ? "this connection sends too many requests"
                                           : "all connections together send too many requests",
                                       seconds),
                 .errors = {},
                 .retry_after_s = static_cast<int>(std::max<int64_t>(seconds, 1))};
}

std::variant<Response, Call> RestService::Admit(const Request& request, RateLimiter* connection,
                                                TimePoint now) {
  if (!token_read_at_.has_value() || now - *token_read_at_ >= kTokenAge) {
    token_read_at_ = now;
    access_.SetToken(read_token_());
  }
  if (auto problem = CheckRate(access_.HasToken(request), connection, now)) {
    return ToResponse(*problem);
  }
  if (auto problem = access_.CheckHost(request)) return ToResponse(*problem);
  if (request.target.size() > limits_.target_bytes_max) {
    return ToResponse({.status = 414,
                       .code = "target",
                       .detail = fmt::format("the target has {} bytes; at most {} are allowed",
                                             request.target.size(), limits_.target_bytes_max),
                       .errors = {}});
  }
  if (const auto file = files_.find(request.target.substr(0, request.target.find('?')));
      file != files_.end()) {
    if (!Reads(request.method)) return NotAllowed(request, "GET, HEAD");
    Response response;
    response.content_type = file->second.content_type;
    response.body = file->second.bytes;
    return response;
  }
  auto parsed = ParseTarget(request.target);
  if (auto* problem = std::get_if<Problem>(&parsed)) return ToResponse(*problem);
  const auto& target = std::get<Target>(parsed);
  const std::optional<PathMatch> match = FindRoute(AllRoutes(), target, request.method);
  const RouteKind kind = match && match->route ? match->route->kind : RouteKind::kRead;
  if (auto problem = access_.CheckAccess(request, kind)) return ToResponse(*problem);
  if (!match) return NotFound(request);
  if (match->route == nullptr) return NotAllowed(request, match->allowed);
  auto call = CheckCall(*match->route, target, request);
  if (auto* problem = std::get_if<Problem>(&call)) return ToResponse(*problem);
  return std::get<Call>(std::move(call));
}

Response RestService::Run(const Call& call, Backend& backend) {
  return RunCall(call, backend);
}

const std::vector<std::pair<std::string_view, std::string_view>>& SecurityHeaders() {
  static const auto* const kHeaders =
      new std::vector<std::pair<std::string_view, std::string_view>>{
          {"Cache-Control", "no-store"},
          {"Content-Security-Policy",
           "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Referrer-Policy", "no-referrer"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"}};
  return *kHeaders;
}

}  // namespace muster::scaler::rest
