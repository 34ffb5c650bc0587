#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kubernetes/config/cluster_access.h"
#include "kubernetes/config/exec_plugin.h"

namespace muster::kubernetes {

struct HttpRequest {
  /// "GET", "POST", ...
  std::string method = "GET";
  /// Path and query, encoded, without the prefix of the server's URL.
  std::string target;
  std::string body;
  std::string content_type = "application/json";
  /// Empty: none is sent.
  std::string token;
};

struct HttpAnswer {
  int code = 0;
  /// The header of this name; empty if there is none.
  std::string retry_after;
  std::string body;
};

/// What bounds an answer that comes in pieces.
struct StreamLimits {
  /// No piece for so long: the server hangs, or something between has forgotten the connection.
  std::chrono::milliseconds silence{40'000};
  /// The stream is left at this time, without an error.
  TimePoint end = TimePoint::max();
};

/// One connection to the API server: TLS with the server's certificate checked against the
/// cluster's authority and the server's name. One call at a time; every call blocks until its
/// deadline at most.
///
/// Errors: kUnavailable (nothing listens, or the connection broke: a change may have happened),
/// kDeadlineExceeded (likewise), kFailedPrecondition (certificates: nothing was sent),
/// kResourceExhausted (the answer is longer than allowed), kCancelled (`stop`).
class Connection {
 public:
  /// Connects and shakes hands. The names of `access` are looked up by the system's resolver, which
  /// has time limits of its own.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ClusterAccess& access,
                                                          const Credentials& credentials,
                                                          TimePoint deadline,
                                                          std::stop_token stop = {});
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  /// Sends a request and reads the whole answer, of at most `bytes_max` bytes. `stop` replaces that
  /// of Open().
  absl::StatusOr<HttpAnswer> Exchange(const HttpRequest& request, TimePoint deadline,
                                      uint64_t bytes_max, std::stop_token stop = {});

  /// Sends a request and gives the body of a 200 to `on_bytes` as it comes, until the server ends
  /// it, `on_bytes` returns an error (which is returned), or a limit ends it. Any other answer is
  /// read whole. The connection serves no further call.
  absl::StatusOr<HttpAnswer> Stream(const HttpRequest& request, TimePoint header_deadline,
                                    const StreamLimits& limits,
                                    const std::function<absl::Status(std::string_view)>& on_bytes);

  /// True if another Exchange may follow: the server keeps the connection, and has not closed it
  /// since.
  bool IsReusable() const;

 private:
  class Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::kubernetes
