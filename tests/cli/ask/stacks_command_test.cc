#include "cli/ask/stacks_command.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "tests/admin/small_master.h"
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

TEST(StacksCommandTest, OfAnotherMachineItSaysWhatToDoThere) {
  testing::SmallMaster master;
  testing::TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), testing::IsOk());
  ASSERT_THAT(MakeDirectories(state.scaler()), testing::IsOk());
  std::filesystem::copy_file(master.token_file(), state.token());
  ASSERT_THAT(state.WriteEndpoint(
                  {.master = master.address(), .pid = ::getpid(), .job = {"id-1", "flights"}}),
              testing::IsOk());
  v1::ReportNodeRequest report;
  report.set_node("far");
  report.set_role("worker");
  report.set_what("started");
  report.set_run_id("run-1");
  report.set_start(1);
  report.set_pid(4711);
  report.set_host("gpu-2");
  ASSERT_THAT(master.Client({"id-1", "flights"}, WhenAway::kFail)->ReportNode(report),
              testing::IsOk());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(StacksCommand({.query = {.target = {.state_directory = folder.path()}}, .node = "far"}),
            kExitUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("runs far on gpu-2, where alone its stacks can be had: there, `kill -QUIT "
                        "$(ps -o ppid= -p 4711)`"));
}

}  // namespace
}  // namespace muster
