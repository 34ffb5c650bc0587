#include "cli/show/output.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

TEST(OutputTest, AnErrorIsSaidAndHasItsExitCode) {
  const std::vector<std::pair<absl::Status, int>> cases = {
      {absl::UnavailableError("x"), kExitUnreachable},
      {absl::DeadlineExceededError("x"), kExitUnreachable},
      {absl::NotFoundError("x"), kExitUnreachable},
      {absl::UnauthenticatedError("x"), kExitUnreachable},
      {absl::InvalidArgumentError("x"), kExitUsage},
      {absl::InternalError("x"), kExitFailed},
      {absl::FailedPreconditionError("x"), kExitFailed}};
  for (const auto& [status, exit_code] : cases) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(PrintError(status), exit_code) << status;
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "muster: x\n");
  }
}

TEST(OutputTest, DataGoToStdoutAsTheyAre) {
  testing::internal::CaptureStdout();
  PrintData("a\nb");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "a\nb");
}

}  // namespace
}  // namespace muster
