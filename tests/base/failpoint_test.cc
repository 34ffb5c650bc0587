#include "base/failpoint.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#if MUSTER_WITH_FAILPOINTS

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

absl::Status Step() {
  MUSTER_FAILPOINT("test.begin");
  MUSTER_FAILPOINT_OR_RETURN("test.before-write");
  MUSTER_FAILPOINT("test.end");
  return absl::OkStatus();
}

class FailpointTest : public ::testing::Test {
 protected:
  ~FailpointTest() override { EXPECT_THAT(ArmFailpoints({}), IsOk()); }
  testing::TempDir folder_;
};

TEST_F(FailpointTest, IsListedBeforeItWasEverReached) {
  EXPECT_THAT(FailpointNames(), Contains(FailpointName{"test.begin", false}));
  EXPECT_THAT(FailpointNames(), Contains(FailpointName{"test.before-write", true}));
}

TEST_F(FailpointTest, DoesNothingUnlessArmed) {
  EXPECT_THAT(Step(), IsOk());
  ASSERT_THAT(ArmFailpoints({.actions = "test.before-write=error"}), IsOk());
  EXPECT_THAT(Step(), StatusIs(absl::StatusCode::kInternal, HasSubstr("test.before-write")));
  EXPECT_THAT(Step(), StatusIs(absl::StatusCode::kInternal, HasSubstr("injected")));
  ASSERT_THAT(ArmFailpoints({}), IsOk());
  EXPECT_THAT(Step(), IsOk());
}

TEST_F(FailpointTest, ActsAtOneHitOnly) {
  ASSERT_THAT(ArmFailpoints({.actions = "test.begin=delay:0ms;test.before-write=full@2;"}), IsOk());
  EXPECT_THAT(Step(), IsOk());
  EXPECT_THAT(Step(), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("No space")));
  EXPECT_THAT(Step(), IsOk());
}

TEST_F(FailpointTest, WhatIsWrongIsNamed) {
  for (const char* wrong :
       {"no.such=crash", "test.begin", "test.begin=", "test.begin=explode", "test.begin=crash@0",
        "test.begin=crash@x", "test.begin=delay:ms", "test.begin=delay:5", "test.begin=error",
        "test.end=full", "test.end=crash;test.end=crash"}) {
    EXPECT_THAT(ArmFailpoints({.actions = wrong}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("MUSTER_FAILPOINTS"), HasSubstr("name=crash"))))
        << wrong;
  }
}

TEST_F(FailpointTest, ActsOnceAmongAllThatShareAFolder) {
  const FailpointOptions options{.actions = "test.before-write=error",
                                 .once_folder = folder_.path()};
  ASSERT_THAT(ArmFailpoints(options), IsOk());
  EXPECT_THAT(Step(), StatusIs(absl::StatusCode::kInternal, HasSubstr("injected")));
  EXPECT_THAT(Step(), IsOk());
  ASSERT_THAT(ArmFailpoints(options), IsOk());  // as another process
  EXPECT_THAT(Step(), IsOk());
}

TEST_F(FailpointTest, WritesDownWhatWasReached) {
  const std::string reached = folder_.File("reached");
  ASSERT_THAT(ArmFailpoints({.actions = "test.before-write=error@1", .reached_file = reached}),
              IsOk());
  EXPECT_FALSE(Step().ok());
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string text, ReadFile(reached, 4096));
  EXPECT_EQ(text, "test.begin\ntest.before-write\n");
  EXPECT_THAT(Step(), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(text, ReadFile(reached, 4096));
  EXPECT_EQ(text, "test.begin\ntest.before-write\ntest.end\n");
}

TEST_F(FailpointTest, CrashIsSigkill) {
  EXPECT_EXIT(
      {
        const absl::Status armed = ArmFailpoints({.actions = "test.end=crash"});
        static_cast<void>(Step());
        std::_Exit(armed.ok() ? 0 : 1);
      },
      ::testing::KilledBySignal(SIGKILL), "failpoint test.end");
}

TEST_F(FailpointTest, StopsUntilItIsContinued) {
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(ArmFailpoints({.actions = "test.begin=stop"}));
    ::_exit(Step().ok() ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace muster

#endif
