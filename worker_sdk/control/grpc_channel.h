#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "net/tls_engine.h"

namespace muster::sdk {

/// Unary gRPC calls over one HTTP/2 connection, without the gRPC runtime: blocking, one call at a
/// time, for one thread (not thread-safe). The first call connects. The connection is kept, and
/// made again if it breaks. Source: the gRPC over HTTP/2 protocol (grpc/grpc,
/// doc/PROTOCOL-HTTP2.md).
class GrpcChannel {
 public:
  /// `address`: "host:port". A name is resolved at each new connection.
  /// `tls`: asked for each connection; empty: plain text.
  explicit GrpcChannel(std::string address, net::TlsContextSource tls = {});
  ~GrpcChannel();
  GrpcChannel(const GrpcChannel&) = delete;
  GrpcChannel& operator=(const GrpcChannel&) = delete;

  /// Names and values that every call carries from now on; names in lower case.
  void SetMetadata(std::vector<std::pair<std::string, std::string>> metadata) {
    metadata_ = std::move(metadata);
  }

  /// Calls `method` ("/muster.v1.WorkerService/Hello") with the encoded `request` and returns the
  /// encoded response. Errors: the status that the server answered; kUnavailable when it cannot be
  /// reached or the connection broke; kDeadlineExceeded after `timeout`; kResourceExhausted for a
  /// response over kResponseBytesMax. If a kept connection turns out to be dead before any answer,
  /// the call is repeated once on a new one. So calls must be idempotent.
  absl::StatusOr<std::string> Call(std::string_view method, std::string_view request,
                                   std::chrono::milliseconds timeout);

  static constexpr size_t kResponseBytesMax = size_t{64} << 20;

 private:
  struct Connection;
  absl::StatusOr<std::string> CallOnce(std::string_view method, std::string_view request,
                                       std::chrono::steady_clock::time_point deadline,
                                       bool* nothing_answered);

  std::string address_;
  net::TlsContextSource tls_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace muster::sdk
