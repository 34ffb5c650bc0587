#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <string>

#include "absl/status/status.h"

namespace muster {

/// The same canonical code and message; a message longer than 4 KiB is cut.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

/// Whom a call went to, in words for people.
struct Callee {
  std::string name;  // "the master at 127.0.0.1:20123"
  std::chrono::milliseconds deadline{0};
};
/// As above, for people: the callee's own words after its name. If they are gRPC's, because the
/// callee was not reached or gave no answer, a sentence that says so and what to do; the code
/// stays.
absl::Status FromGrpcStatus(const grpc::Status& status, const Callee& callee);

}  // namespace muster
