#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "store/names/credentials.h"

namespace muster {

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::string etag;
  std::string content_range;
  std::string retry_after;
  std::string bucket_region;
  uint64_t sink_bytes = 0;
};

struct HttpRequest {
  std::string method;
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string_view body;             // borrowed until the call returns
  /// Where the body of a success goes (status 200 or 206); -1: into HttpAnswer::body.
  int sink_fd = -1;
  uint64_t sink_offset = 0;
  /// For a sink: called once with the head of a success, before anything is written. Returns how
  /// many bytes the body may have; an error ends the request.
  std::function<absl::StatusOr<uint64_t>(const HttpAnswer& head)> on_head;
  uint64_t body_bytes_max = 8 << 20;  // of HttpAnswer::body
  /// Instead of the client's: for a request that the server works on before it answers.
  std::optional<std::chrono::seconds> stall_timeout = std::nullopt;
};

/// The one adapter of libcurl: requests that are signed for S3 (AWS's signature, version 4, with
/// the SHA-256 of the body, which the server checks), over connections that are used again.
/// Thread-safe; a call blocks.
class HttpClient {
 public:
  struct Options {
    std::string region;
    std::string ca_file;  // empty: the system's certificates
    std::chrono::milliseconds connect_timeout{3'000};
    /// An answer or a body that stands still for so long has failed.
    std::chrono::seconds stall_timeout{10};
  };
  explicit HttpClient(Options options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Any answer is OK, whatever its status. kUnavailable: no whole answer came. kDeadlineExceeded:
  /// nor came a byte for the time of a timeout.
  /// kFailedPrecondition: the certificate is not valid, or the URL is wrong. kResourceExhausted:
  /// the disk of the sink is full, or the body is larger than allowed.
  absl::StatusOr<HttpAnswer> Do(const HttpRequest& request, const S3Credentials& credentials);

 private:
  class Connections;
  const Options options_;
  const std::unique_ptr<Connections> connections_;
};

}  // namespace muster
