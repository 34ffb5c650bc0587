#include "cli/ask/stacks_command.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(StacksCommandTest, WithoutAJobOrAProcessItSaysWhichThereAre) {
  testing::TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), testing::IsOk());
  const StacksOptions options{.query = {.target = {.state_directory = folder.path()}},
                              .node = "worker-0"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(StacksCommand(options), kExitUnreachable);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("no job runs"));
  ASSERT_THAT(state.WriteEndpoint({.master = "127.0.0.1:1", .pid = ::getpid()}), testing::IsOk());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(StacksCommand(options), kExitUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("nodes with a process: none"));
}

}  // namespace
}  // namespace muster
