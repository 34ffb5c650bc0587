#include "host/processes/supervise.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StatusIs;

TEST(SuperviseArgumentsTest, RoundTrip) {
  const SuperviseOptions options{.name = "worker-1",
                                 .control_fd = 7,
                                 .listen_fd = 8,
                                 .start = 3,
                                 .life_fd = 11,
                                 .keep_descendants = true,
                                 .held_fd = 9,
                                 .pass_fds = {12, -1},
                                 .cgroup_fds = {13},
                                 .memory_limit_bytes = 5'000'000'000,
                                 .parent_pid = 42,
                                 .log_path = "/x/worker-1.log",
                                 .log_bytes_max = 99,
                                 .working_directory = "/x y",
                                 .stop_timeout = std::chrono::milliseconds(12),
                                 .command = {"sh", "-c", "--", "exit 1"}};
  MUSTER_ASSERT_OK_AND_ASSIGN(const SuperviseOptions back,
                              ParseSuperviseArguments(SuperviseArguments(options)));
  EXPECT_EQ(back.name, options.name);
  EXPECT_EQ(back.control_fd, 7);
  EXPECT_EQ(back.listen_fd, 8);
  EXPECT_EQ(back.start, 3u);
  EXPECT_EQ(back.life_fd, 11);
  EXPECT_TRUE(back.keep_descendants);
  EXPECT_EQ(back.held_fd, 9);
  EXPECT_THAT(back.pass_fds, ElementsAre(12, -1));
  EXPECT_THAT(back.cgroup_fds, ElementsAre(13));
  EXPECT_EQ(back.memory_limit_bytes, 5'000'000'000u);
  EXPECT_EQ(back.parent_pid, 42);
  EXPECT_EQ(back.log_path, options.log_path);
  EXPECT_EQ(back.log_bytes_max, 99u);
  EXPECT_EQ(back.working_directory, "/x y");
  EXPECT_EQ(back.stop_timeout, options.stop_timeout);
  EXPECT_THAT(back.command, ElementsAre("sh", "-c", "--", "exit 1"));
}

TEST(SuperviseArgumentsTest, DescendantsAreNotKeptUnlessSaid) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const SuperviseOptions back,
                              ParseSuperviseArguments(SuperviseArguments({.command = {"x"}})));
  EXPECT_FALSE(back.keep_descendants);
  EXPECT_EQ(back.listen_fd, -1);
  EXPECT_EQ(back.life_fd, -1);
  EXPECT_THAT(back.pass_fds, IsEmpty());
  EXPECT_THAT(back.cgroup_fds, IsEmpty());
}

TEST(SuperviseArgumentsTest, Mistakes) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ParseSuperviseArguments({"--name", "x"}),
              StatusIs(kInvalid, HasSubstr("no command")));
  EXPECT_THAT(ParseSuperviseArguments({"--name"}), StatusIs(kInvalid, HasSubstr("needs a value")));
  EXPECT_THAT(ParseSuperviseArguments({"--bogus", "1", "--", "x"}),
              StatusIs(kInvalid, HasSubstr("--bogus")));
  EXPECT_THAT(ParseSuperviseArguments({"--control-fd", "three", "--", "x"}),
              StatusIs(kInvalid, HasSubstr("three")));
  EXPECT_THAT(ParseSuperviseArguments({"--pass-fds", "1,x", "--", "x"}),
              StatusIs(kInvalid, HasSubstr("--pass-fds: 'x'")));
}

}  // namespace
}  // namespace muster
