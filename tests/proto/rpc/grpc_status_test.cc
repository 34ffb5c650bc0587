#include "proto/rpc/grpc_status.h"

#include <gmock/gmock.h>

#include "base/status.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(GrpcStatusTest, KeepsCodeAndMessageBothWays) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status) << code;
  }
  EXPECT_EQ(ToGrpcStatus(absl::NotFoundError("x")).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(GrpcStatusTest, OwnWordsFollowTheCallee) {
  const Callee master{.name = "the master at 127.0.0.1:1", .deadline = std::chrono::seconds(5)};
  for (const absl::Status& status :
       {absl::UnavailableError("the journal is full"), absl::DeadlineExceededError("too slow"),
        absl::NotFoundError("no node")}) {
    const absl::Status told = FromGrpcStatus(ToGrpcStatus(status), master);
    EXPECT_EQ(told.code(), status.code());
    EXPECT_EQ(told.message(), "the master at 127.0.0.1:1: " + std::string(status.message()));
  }
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK, master).ok());
}

TEST(GrpcStatusTest, WordsOfGrpcBecomeASentence) {
  const Callee master{.name = "the master at 127.0.0.1:1", .deadline = std::chrono::seconds(5)};
  const auto told = [&](grpc::StatusCode code, const char* words) {
    const absl::Status status = FromGrpcStatus(grpc::Status(code, words), master);
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(words)));
    return std::string(status.message());
  };
  EXPECT_THAT(told(grpc::StatusCode::UNAVAILABLE, "failed to connect to all addresses"),
              StartsWith("the master at 127.0.0.1:1 cannot be reached"));
  EXPECT_THAT(
      told(grpc::StatusCode::UNAVAILABLE, "Tls handshake failed: certificate verify failed"),
      HasSubstr("another authority than the job's"));
  EXPECT_THAT(told(grpc::StatusCode::UNAVAILABLE, "Hostname Verification Check failed."),
              HasSubstr("another job or role"));
  EXPECT_THAT(told(grpc::StatusCode::UNAVAILABLE, "Tls handshake failed: wrong version number"),
              HasSubstr("speaks plain text"));
  EXPECT_THAT(told(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"),
              StartsWith("the master at 127.0.0.1:1 has not answered within 5 s"));
  EXPECT_THAT(told(grpc::StatusCode::CANCELLED, "CANCELLED"),
              StartsWith("the master at 127.0.0.1:1 ended before it answered"));
}

TEST(GrpcStatusTest, CutsALongMessage) {
  const grpc::Status status = ToGrpcStatus(absl::InternalError(std::string(10'000, 'x')));
  EXPECT_EQ(status.error_message().size(), 4096u);
}

}  // namespace
}  // namespace muster
