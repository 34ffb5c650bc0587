#include "cli/metrics/compare_command.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cli/metrics/stopped_job.h"

namespace muster::metrics {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CompareCommandTest, StateDirectoriesAndJobFilesAreJobs) {
  const StoppedJob slow("0.1");
  const StoppedJob fast("0.3");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(CompareCommand({.jobs = {slow.state(), fast.File("job.yaml")}}), kExitSucceeded);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, AllOf(HasSubstr("A  " + slow.state()), HasSubstr("stopped"),
                          HasSubstr("env.LEARNING_RATE\n  A  0.1\n  B  0.3\n")));
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(CompareCommand({.jobs = {slow.state(), fast.state()}, .output = OutputFormat::kJson}),
            kExitSucceeded);
  const auto json = nlohmann::json::parse(::testing::internal::GetCapturedStdout());
  ASSERT_EQ(json["differences"].size(), 1u);
  EXPECT_EQ(json["differences"][0]["values"], nlohmann::json({"0.1", "0.3"}));
  EXPECT_EQ(json["jobs"][1]["state_directory"], fast.state());
}

TEST(CompareCommandTest, AJobThatNeverRanIsNamed) {
  const StoppedJob job;
  const testing::TempDir empty;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(CompareCommand({.jobs = {job.state(), empty.path()}}), kExitUnreachable);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(empty.path()));
}

}  // namespace
}  // namespace muster::metrics
