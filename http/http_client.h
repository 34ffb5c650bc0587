#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace muster {

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  /// The whole body; if it went to HttpRequest::on_bytes, it is empty.
  std::string body;

  bool IsSuccess() const { return status >= 200 && status < 300; }
  /// The value of the header of this name, in any case; empty if there is none.
  std::string_view Header(std::string_view name) const;
};

/// How an https server proves who it is, and how we do. PEM texts; empty: there is none.
struct HttpTls {
  /// The only authorities that count; both empty: those that this machine trusts.
  std::string authority_file;
  std::string authority;
  std::string client_certificate;
  std::string client_key;
  /// Adds checks that replace that of the server's name.
  std::function<void(ssl_ctx_st*)> add_checks;
};

/// The signature of AWS, version 4, with what the header "x-amz-content-sha256" says.
struct AwsSignature {
  std::string region;
  std::string access_key;
  std::string secret_key;
};

struct HttpTimes {
  static constexpr auto kNever = std::chrono::milliseconds::max();

  /// Of looking up the name, connecting, and TLS.
  std::chrono::milliseconds connect{10'000};
  /// From connecting to the last byte; for an answer that goes to `on_bytes`, to its head.
  std::chrono::milliseconds whole = kNever;
  /// An answer that goes to `on_bytes` is left, without an error, so long after the call.
  std::chrono::milliseconds length = kNever;
  /// Such an answer has failed after so long without a byte.
  std::chrono::milliseconds silence = kNever;
  /// A request or an answer that moves less than 1 KiB/s for so long has failed; 0: it has not.
  std::chrono::seconds stall{0};
};

struct HttpRequest {
  std::string method = "GET";
  /// Encoded. Nothing in it is changed, and no redirect is followed.
  std::string url;
  /// How messages call the other end.
  std::string peer;
  /// "host:port", with an IPv6 address in brackets: to connect there, while `url` has the name that
  /// the server's certificate must have. Empty: where `url` says.
  std::string connect_to;
  std::vector<std::string> headers;  // "Name: value"; "Name:" leaves one out
  std::string_view body;             // borrowed until the call returns
  std::optional<AwsSignature> signature;
  HttpTls tls;
  HttpTimes times;
  uint64_t body_bytes_max = 8 << 20;  // of HttpAnswer::body
  /// If this is set, it gets the body of a success as it comes. An error ends the call, which
  /// returns it.
  std::function<absl::Status(std::string_view)> on_bytes;
  /// With `on_bytes`: called once before it with the head of the success, likewise.
  std::function<absl::Status(const HttpAnswer& head)> on_head;
  /// Called once in a call that has taken `slow_after` and goes on.
  std::function<void()> on_slow;
  std::chrono::milliseconds slow_after{0};
  /// Ends the call at once.
  std::stop_token stop;
  /// The request is sent again on a new connection if the server has closed a waiting one just when
  /// it was used. For a change that must not happen twice: false.
  bool may_repeat = true;
};

/// Proxies: kEnvironment obeys http_proxy, https_proxy and no_proxy.
enum class HttpProxies { kNone, kEnvironment };

/// The one way to ask over HTTP, and the one adapter of libcurl: HTTP/1.1 over connections that are
/// used again. Thread-safe; a call blocks.
class HttpClient {
 public:
  explicit HttpClient(HttpProxies proxies);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Any answer is OK, whatever its status. Errors name the peer:
  /// kUnavailable: nothing answers, or no whole answer came. kDeadlineExceeded: not in time.
  /// kFailedPrecondition: the server's certificate is not trusted, ours cannot be used, or the URL
  /// is wrong. kResourceExhausted: the body is larger than allowed. kCancelled: `stop`.
  absl::StatusOr<HttpAnswer> Do(const HttpRequest& request);

 private:
  class Handles;
  const HttpProxies proxies_;
  const std::unique_ptr<Handles> handles_;
};

/// False if an error of HttpClient::Do says that the request was not sent: nothing was done.
bool MayHaveArrived(const absl::Status& status);

}  // namespace muster
