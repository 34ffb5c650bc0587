#include "cli/steer/wait_command.h"

#include "tests/cli/steer/steer_fixture.h"

namespace muster::steer {
namespace {

using muster::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

Awaited Parsed(std::string_view text) {
  absl::StatusOr<Awaited> awaited = ParseAwaited(text);
  EXPECT_THAT(awaited.status(), IsOk()) << text;
  return awaited.value_or(Awaited());
}

JobLook With(NodeState worker, DrainState drain = DrainState::kNone) {
  JobLook look{.runs = true, .status = JobStatus()};
  look.status->nodes.push_back({.name = "master", .role = "master", .state = NodeState::kRunning});
  look.status->nodes.push_back(
      {.name = "worker-1", .role = "worker", .state = worker, .drain = drain});
  return look;
}

TEST(WaitCommandTest, WhatCannotBeWaitedForIsRefusedWithWhatCan) {
  for (const char* text : {"", "End", "worker-1", "=running", "worker-1=", "worker-1=asleep"}) {
    const absl::Status refused = ParseAwaited(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << text;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("worker-1=running"), HasSubstr("finished, waiting, drained")));
  }
}

TEST(WaitCommandTest, TheEndIsReachedWhenNoRunIsLeft) {
  EXPECT_FALSE(IsReached(Parsed("end"), {.runs = true, .status = {}}));
  EXPECT_FALSE(IsReached(Parsed("end"), With(NodeState::kExited)));
  EXPECT_TRUE(IsReached(Parsed("end"), {.runs = false, .status = JobStatus()}));
}

TEST(WaitCommandTest, AJobRunsWhenAWorkerRuns) {
  EXPECT_FALSE(IsReached(Parsed("running"), {.runs = true, .status = {}}));
  EXPECT_FALSE(IsReached(Parsed("running"), With(NodeState::kStarting)));
  EXPECT_TRUE(IsReached(Parsed("running"), With(NodeState::kRunning)));
}

TEST(WaitCommandTest, ANodeIsComparedByItsNameAndStateOrDrain) {
  EXPECT_TRUE(IsReached(Parsed("worker-1=finished"), With(NodeState::kFinished)));
  EXPECT_FALSE(IsReached(Parsed("worker-1=finished"), With(NodeState::kExited)));
  EXPECT_FALSE(IsReached(Parsed("worker-2=finished"), With(NodeState::kFinished)));
  EXPECT_TRUE(
      IsReached(Parsed("worker-1=drained"), With(NodeState::kRunning, DrainState::kDrained)));
  EXPECT_FALSE(
      IsReached(Parsed("worker-1=drained"), With(NodeState::kFinished, DrainState::kDraining)));
}

TEST(WaitCommandTest, AJobThatHasEndedBringsNothingMore) {
  JobLook over = With(NodeState::kExited, DrainState::kDrained);
  over.runs = false;
  over.status->state = JobState::kSucceeded;
  EXPECT_EQ(OutOfReach(Parsed("worker-1=finished"), over, /*ran=*/false), "")
      << "the next run may be about to begin";
  EXPECT_EQ(OutOfReach(Parsed("worker-1=finished"), over, true),
            "the job has ended (succeeded); worker-1 is exited and drained");
  EXPECT_EQ(OutOfReach(Parsed("worker-9=finished"), over, true),
            "the job has ended (succeeded) without a worker-9");
  EXPECT_EQ(OutOfReach(Parsed("running"), over, true), "the job has ended (succeeded)");
  EXPECT_EQ(OutOfReach(Parsed("end"), over, true), "");
  over.runs = true;
  EXPECT_EQ(OutOfReach(Parsed("worker-1=finished"), over, true), "");
}

TEST(WaitCommandTest, ARunHasAnExitCodeByTheStateOfItsJob) {
  EXPECT_EQ(ExitCodeOf(JobState::kSucceeded), 0);
  EXPECT_EQ(ExitCodeOf(JobState::kFailed), 1);
  EXPECT_EQ(ExitCodeOf(JobState::kDrained), 3);
  EXPECT_EQ(ExitCodeOf(JobState::kStopped), 3);
  EXPECT_EQ(ExitCodeOf(JobState::kCancelled), 4);
}

class WaitForJobTest : public testing::SteerFixture {};

TEST_F(WaitForJobTest, WithoutAnyJobTheEndIsAnError) {
  EXPECT_EQ(Call([&] { return WaitCommand({.query = Query()}); }), kExitUnreachable);
  EXPECT_THAT(err_, HasSubstr("no job ever ran"));
}

TEST_F(WaitForJobTest, WhenTheTimeIsOverItSaysWhatTheJobIs) {
  StartMaster();
  const WaitOptions options{.query = Query(), .awaited = "end", .timeout_s = 1};
  EXPECT_EQ(Call([&] { return WaitCommand(options); }), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("end was not reached within 1 s; state: running"));
}

TEST_F(WaitForJobTest, AJobThatIsAboutToBeginIsWaitedFor) {
  const WaitOptions options{.query = Query(), .awaited = "running", .timeout_s = 1};
  EXPECT_EQ(Call([&] { return WaitCommand(options); }), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("state: not running"));
}

}  // namespace
}  // namespace muster::steer
