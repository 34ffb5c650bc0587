#include "proto/rpc/grpc_status.h"

#include "base/status.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

TEST(GrpcStatusTest, KeepsCodeAndMessageBothWays) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status) << code;
  }
  EXPECT_EQ(ToGrpcStatus(absl::NotFoundError("x")).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(GrpcStatusTest, CutsALongMessage) {
  const grpc::Status status = ToGrpcStatus(absl::InternalError(std::string(10'000, 'x')));
  EXPECT_EQ(status.error_message().size(), 4096u);
}

}  // namespace
}  // namespace muster
