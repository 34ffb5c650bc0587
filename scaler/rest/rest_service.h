#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "scaler/rest/access.h"
#include "scaler/rest/http_message.h"
#include "scaler/rest/rate_limit.h"
#include "scaler/rest/router.h"

namespace muster::scaler::rest {

/// A file of the dashboard. Everybody gets it under its path, without a token.
struct StaticFile {
  std::string_view path;  // "/", "/dashboard.js"
  std::string_view content_type;
  std::string_view bytes;  // outlive the service
};

struct RestLimits {
  /// Limits for the requests of one connection, of all connections with the token, and of all
  /// connections without it. So those without the token cannot use up the others' share.
  Rate per_connection{.per_second = 50, .burst = 200};
  Rate with_token{.per_second = 200, .burst = 400};
  Rate without_token{.per_second = 50, .burst = 200};
  size_t target_bytes_max = 4096;
};

/// Returns the present token. It is empty if there is none that can be trusted.
using TokenReader = std::function<std::string()>;

/// Handles a request except for its bytes: is it for us, who asks, how often, for what, with which
/// arguments. Pure except for the reader of tokens. It belongs to one thread, but other threads may
/// call Run().
class RestService {
 public:
  /// It serves `port` of this machine, with or without TLS. A changed token takes effect within
  /// kTokenAge: the new token is accepted, and the old one is not any more.
  RestService(uint16_t port, TokenReader read_token, RestLimits limits,
              std::vector<StaticFile> files, TimePoint now,
              const std::vector<std::string>& hosts = {}, bool tls = false);

  static constexpr std::chrono::milliseconds kTokenAge{100};

  /// The limiter of a new connection.
  RateLimiter NewConnection(TimePoint now) const { return {limits_.per_connection, now}; }

  /// Returns an answer if it needs no job. Otherwise returns the call to run.
  std::variant<Response, Call> Admit(const Request& request, RateLimiter* connection,
                                     TimePoint now);

  /// Runs the call. It may block as long as the job does. Thread-safe.
  static Response Run(const Call& call, Backend& backend);

 private:
  std::optional<Problem> CheckRate(bool has_token, RateLimiter* connection, TimePoint now);

  AccessControl access_;
  TokenReader read_token_;
  std::optional<TimePoint> token_read_at_;
  RestLimits limits_;
  std::map<std::string, StaticFile, std::less<>> files_;
  RateLimiter with_token_;
  RateLimiter without_token_;
};

/// Headers of every answer. They forbid browsers to store it, to show it in a frame, to guess its
/// type, and to load parts from elsewhere. Source: OWASP Cheat Sheet Series, "HTTP Security
/// Response Headers".
const std::vector<std::pair<std::string_view, std::string_view>>& SecurityHeaders();

}  // namespace muster::scaler::rest
