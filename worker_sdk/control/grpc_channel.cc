#include "worker_sdk/control/grpc_channel.h"

#include <optional>

namespace muster::sdk {

GrpcChannel::~GrpcChannel() {
  client_.reset();
  // Handlers hold a closed connection, so they must still run.
  loop_.restart();
  loop_.poll();
}

absl::StatusOr<std::string> GrpcChannel::Call(std::string_view method, std::string_view request,
                                              std::chrono::milliseconds timeout) {
  // Handles what has arrived since the last call, for example that the server closed the
  // connection.
  loop_.restart();
  loop_.poll();
  std::optional<absl::StatusOr<std::string>> answer;
  client_->Call(method, request, timeout,
                [&answer](absl::StatusOr<std::string> result) { answer = std::move(result); });
  loop_.restart();
  while (!answer.has_value()) loop_.run_one();
  return *std::move(answer);
}

}  // namespace muster::sdk
