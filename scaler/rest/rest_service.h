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

/// A file of the dashboard: shown to everybody, without a token, under its path.
struct StaticFile {
  std::string_view path;  // "/", "/dashboard.js"
  std::string_view content_type;
  std::string_view bytes;  // outlive the service
};

struct RestLimits {
  /// Requests per connection, over all connections that have the token, and over all that have not:
  /// who has none cannot use up what the others need.
  Rate per_connection{.per_second = 50, .burst = 200};
  Rate with_token{.per_second = 200, .burst = 400};
  Rate without_token{.per_second = 50, .burst = 200};
  size_t target_bytes_max = 4096;
};

/// What the token is now; empty: there is none that can be trusted.
using TokenReader = std::function<std::string()>;

/// Everything of a request but its bytes: is it for us, who asks, how often, for what, with which
/// arguments. Pure but for the reader of tokens; belongs to one thread. Run() alone may be called
/// by others.
class RestService {
 public:
  /// On `port` of this machine, over TLS or not. A token that has changed is known within
  /// kTokenAge: who has the new one is let in, and who has the old one no more.
  RestService(uint16_t port, TokenReader read_token, RestLimits limits,
              std::vector<StaticFile> files, TimePoint now,
              const std::vector<std::string>& hosts = {}, bool tls = false);

  static constexpr std::chrono::milliseconds kTokenAge{100};

  /// The limiter that a new connection begins with.
  RateLimiter NewConnection(TimePoint now) const { return {limits_.per_connection, now}; }

  /// An answer that needs no job, or what is to be run.
  std::variant<Response, Call> Admit(const Request& request, RateLimiter* connection,
                                     TimePoint now);

  /// Runs the call; may block as long as the job does. Thread-safe.
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

/// Headers that every answer has: nothing is stored, framed, guessed or loaded from elsewhere.
/// Source: OWASP Cheat Sheet Series, "HTTP Security Response Headers".
const std::vector<std::pair<std::string_view, std::string_view>>& SecurityHeaders();

}  // namespace muster::scaler::rest
