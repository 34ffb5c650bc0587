#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker_sdk/control/grpc_client.h"

namespace muster::sdk {

/// A GrpcClient for a thread that waits for each answer. Calls block, and there is one at a time.
/// For one thread (not thread-safe). Arguments and errors are those of GrpcClient.
class GrpcChannel {
 public:
  explicit GrpcChannel(std::string address, net::TlsContextSource tls = {})
      : client_(std::in_place, &loop_, std::move(address), std::move(tls)) {}
  ~GrpcChannel();
  GrpcChannel(const GrpcChannel&) = delete;
  GrpcChannel& operator=(const GrpcChannel&) = delete;

  void SetMetadata(std::vector<std::pair<std::string, std::string>> metadata) {
    client_->SetMetadata(std::move(metadata));
  }
  absl::StatusOr<std::string> Call(std::string_view method, std::string_view request,
                                   std::chrono::milliseconds timeout);

 private:
  boost::asio::io_context loop_{1};
  std::optional<GrpcClient> client_;
};

}  // namespace muster::sdk
