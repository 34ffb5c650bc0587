#include "cli/state/running_jobs.h"

#include <absl/cleanup/cleanup.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>

#include <algorithm>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::Optional;

std::vector<std::string> PathsOfRunningJobs() {
  std::vector<std::string> paths;
  for (const StateDirectory& state : FindRunningJobs().states) paths.push_back(state.path());
  return paths;
}

TEST(RunningJobsTest, ALockTellsItsStateDirectory) {
  EXPECT_THAT(StateDirectoryOfLock(StateDirectory("/data/job-1").lock()),
              Optional(std::string("/data/job-1")));
  for (const char* other : {"", "/run/lock", "/data/job-1/run/lock.old", "socket:[123]"}) {
    EXPECT_EQ(StateDirectoryOfLock(other), std::nullopt) << other;
  }
}

TEST(RunningJobsTest, AnErrorNamesTheJobsThatRun) {
  EXPECT_EQ(RunningJobsText({}), "No job runs on this machine");
  testing::TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), testing::IsOk());
  const StateDirectory unknown("/data/unknown");
  EXPECT_EQ(RunningJobsText({.states = {unknown}}),
            "On this machine runs: a job without a master (state directory /data/unknown)");
  const absl::StatusOr<StateLock> lock = StateLock::Acquire(state);
  ASSERT_THAT(lock.status(), testing::IsOk());
  ASSERT_THAT(state.WriteEndpoint({.master = "127.0.0.1:20123",
                                   .pid = ::getpid(),
                                   .run_id = "run",
                                   .job = {"", "flights"}}),
              testing::IsOk());
  EXPECT_EQ(RunningJobsText({.states = {state, unknown}}),
            fmt::format("On this machine run: flights (state directory {}), a job without a "
                        "master (state directory /data/unknown)",
                        folder.path()));
}

TEST(RunningJobsTest, AJobIsFoundWhileItsLockIsHeldByTheProgram) {
  testing::TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), testing::IsOk());
  {
    const absl::StatusOr<StateLock> lock = StateLock::Acquire(state);
    ASSERT_THAT(lock.status(), testing::IsOk());
    EXPECT_THAT(PathsOfRunningJobs(), Not(Contains(folder.path())))
        << "this process is no `muster`";
    char name[16] = {};
    ASSERT_EQ(::prctl(PR_GET_NAME, name), 0);
    ASSERT_EQ(::prctl(PR_SET_NAME, "muster"), 0);
    const absl::Cleanup back = [&name] { ::prctl(PR_SET_NAME, name); };
    EXPECT_THAT(PathsOfRunningJobs(), Contains(folder.path()));
  }
  EXPECT_THAT(PathsOfRunningJobs(), Not(Contains(folder.path())));
}

}  // namespace
}  // namespace muster
