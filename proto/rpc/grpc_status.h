#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace muster {

/// The same canonical code and message; a message longer than 4 KiB is cut.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace muster
