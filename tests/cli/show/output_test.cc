#include "cli/show/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
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

TEST(OutputTest, OnlyATerminalHasColumns) {
  const int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(ColumnsOf(file), std::nullopt);
  ::close(file);
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  const auto with = [terminal](unsigned short columns) {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
    return ColumnsOf(terminal);
  };
  EXPECT_EQ(with(80), 79u);
  EXPECT_EQ(with(20), std::nullopt) << "too narrow to fit anything into it";
  EXPECT_EQ(with(0), std::nullopt) << "not known";
  ::close(terminal);
}

}  // namespace
}  // namespace muster
