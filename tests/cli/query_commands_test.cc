#include "cli/query_commands.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "cli/json_output.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

TEST(QueryCommandsTest, ShardIds) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const v1::ShardId id, ParseShardId("1/0/18446744073709551615"));
  EXPECT_EQ(ShardIdToText(id), "1/0/18446744073709551615");
  for (const char* bad : {"", "1", "1/2", "1/2/", "1/2/3/", "1/2/3/4", "a/b/c", "1/-2/3", "1//3",
                          "4294967296/0/0", "0/0/18446744073709551616", " 1/2/3"}) {
    EXPECT_THAT(ParseShardId(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dataset/epoch/index")))
        << bad;
  }
}

TEST(QueryCommandsTest, WhatIsForOneNodeNeedsItsName) {
  EXPECT_EQ(DrainCommand({.wait = true}), kExitUsage);
  EXPECT_EQ(DrainCommand({.undo = true}), kExitUsage);
}

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
