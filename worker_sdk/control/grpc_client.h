#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "net/tls_engine.h"

namespace muster::sdk {

/// Unary gRPC calls over one HTTP/2 connection, on an event loop, without the gRPC runtime. Calls
/// may overlap. The first one connects. The connection is kept, and made again if it breaks.
/// Belongs to the loop's thread. Source: the gRPC over HTTP/2 protocol (grpc/grpc,
/// doc/PROTOCOL-HTTP2.md).
class GrpcClient {
 public:
  /// The encoded response or an error: the status that the server answered; kUnavailable if the
  /// server cannot be reached or the connection broke; kDeadlineExceeded after the time limit;
  /// kResourceExhausted for a response over kResponseBytesMax.
  using Done = std::function<void(absl::StatusOr<std::string>)>;
  static constexpr size_t kResponseBytesMax = size_t{64} << 20;

  /// `address` is "host:port". A name is resolved for each new connection. `tls` is called for each
  /// connection; if empty, connections are plain text.
  GrpcClient(boost::asio::io_context* loop, std::string address, net::TlsContextSource tls = {});
  /// Drops calls without an answer.
  ~GrpcClient();
  GrpcClient(const GrpcClient&) = delete;
  GrpcClient& operator=(const GrpcClient&) = delete;

  /// Sets the names and values that every call carries from now on. Names must be in lower case.
  void SetMetadata(std::vector<std::pair<std::string, std::string>> metadata);

  /// Calls `method` ("/muster.v1.WorkerService/Hello") with the encoded `request`. The loop calls
  /// `done` once, never within Call. If a kept connection turns out to be dead before any answer,
  /// the call is repeated once on a new connection. So calls must be idempotent.
  void Call(std::string_view method, std::string_view request, std::chrono::milliseconds timeout,
            Done done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster::sdk
