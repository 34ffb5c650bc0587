#include "proto/rpc/grpc_status.h"

#include <string>

#include "base/status.h"

namespace muster {

namespace {
// HTTP/2 limits metadata; a longer text would make the whole call fail.
constexpr size_t kMessageBytesMax = 4096;
}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(Message(status).substr(0, kMessageBytesMax)));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace muster
