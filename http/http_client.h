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
  /// The whole body. Empty if it went to HttpRequest::on_bytes.
  std::string body;

  bool IsSuccess() const { return status >= 200 && status < 300; }
  /// The value of the header with this name, in any case. Empty if there is none.
  std::string_view Header(std::string_view name) const;
};

/// How an https server proves its identity, and how we prove ours. All are PEM texts; an empty one
/// is absent.
struct HttpTls {
  /// The only trusted authorities. If both are empty, those of this machine.
  std::string authority_file;
  std::string authority;
  std::string client_certificate;
  std::string client_key;
  /// Adds checks, which replace the check of the server's name.
  std::function<void(ssl_ctx_st*)> add_checks;
};

/// The signature of AWS, version 4. It includes the value of the header "x-amz-content-sha256".
struct AwsSignature {
  std::string region;
  std::string access_key;
  std::string secret_key;
};

struct HttpTimes {
  static constexpr auto kNever = std::chrono::milliseconds::max();

  /// For looking up the name, connecting, and TLS.
  std::chrono::milliseconds connect{10'000};
  /// From connecting to the last byte. For an answer that goes to `on_bytes`, to the end of its
  /// head.
  std::chrono::milliseconds whole = kNever;
  /// This long after the call began, an answer that goes to `on_bytes` is left without an error.
  std::chrono::milliseconds length = kNever;
  /// If such an answer brings no byte for this long, it has failed.
  std::chrono::milliseconds silence = kNever;
  /// If a request or an answer moves less than 1 KiB/s for this long, it has failed. 0: no limit.
  std::chrono::seconds stall{0};
};

struct HttpRequest {
  std::string method = "GET";
  /// It is encoded already. It is not changed, and redirects are not followed.
  std::string url;
  /// The name of the other end in messages.
  std::string peer;
  /// Connects to this "host:port" (an IPv6 address in brackets), while `url` has the name that the
  /// server's certificate must have. If empty, it connects to the host in `url`.
  std::string connect_to;
  std::vector<std::string> headers;  // "Name: value"; "Name:" removes a header
  std::string_view body;             // must live until the call returns
  std::optional<AwsSignature> signature;
  HttpTls tls;
  HttpTimes times;
  uint64_t body_bytes_max = 8 << 20;  // limit for HttpAnswer::body
  /// If set, it gets the body of a successful answer piece by piece. If it returns an error, the
  /// call ends and returns the error.
  std::function<absl::Status(std::string_view)> on_bytes;
  /// Only with `on_bytes`: called once before it, with the head of the successful answer. Errors
  /// work in the same way.
  std::function<absl::Status(const HttpAnswer& head)> on_head;
  /// Called once if a call takes longer than `slow_after`.
  std::function<void()> on_slow;
  std::chrono::milliseconds slow_after{0};
  /// Ends the call at once.
  std::stop_token stop;
  /// If the server has closed a waiting connection just when it was used, the request is sent again
  /// on a new one. Set this to false for a change that must not happen twice.
  bool may_repeat = true;
};

/// How proxies are chosen. kEnvironment follows http_proxy, https_proxy and no_proxy.
enum class HttpProxies { kNone, kEnvironment };

/// All HTTP requests go through this class, which is the only adapter of libcurl. It speaks
/// HTTP/1.1 over connections that are used again. Thread-safe; a call blocks.
class HttpClient {
 public:
  explicit HttpClient(HttpProxies proxies);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Any answer is OK, whatever its status. Errors name the peer:
  /// kUnavailable: there is no answer, or no complete one. kDeadlineExceeded: it did not come in
  /// time. kFailedPrecondition: the server's certificate is not trusted, our certificate cannot be
  /// used, or the URL is wrong. kResourceExhausted: the body is larger than allowed. kCancelled:
  /// `stop`.
  absl::StatusOr<HttpAnswer> Do(const HttpRequest& request);

 private:
  class Handles;
  const HttpProxies proxies_;
  const std::unique_ptr<Handles> handles_;
};

/// False if an error of HttpClient::Do says that the request was not sent, so that nothing was
/// done.
bool MayHaveArrived(const absl::Status& status);

}  // namespace muster
