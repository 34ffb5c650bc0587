#include "cli/query_commands.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

TEST(QueryCommandsTest, ALogAsJsonIsAnObjectALine) {
  testing::TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), testing::IsOk());
  ASSERT_THAT(WriteFileAtomically(state.LogOf("ps-0"), "one \"quoted\"\ntwo \xff\nthree"),
              testing::IsOk());
  const LogsOptions options{
      .query = {.target = {.state_directory = folder.path()}, .output = OutputFormat::kJson},
      .node = "ps-0"};
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(LogsCommand(options), kExitSucceeded);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "{\"line\":\"one \\\"quoted\\\"\",\"node\":\"ps-0\"}\n"
            "{\"line\":\"two ?\",\"node\":\"ps-0\"}\n"
            "{\"line\":\"three\",\"node\":\"ps-0\"}\n");
}

}  // namespace
}  // namespace muster
