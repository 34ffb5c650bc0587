#include <gmock/gmock.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/host/processes/launcher_fixture.h"

/// What a controller may do wrong to `muster supervise`.
namespace muster {
namespace {

using ::muster::testing::HeldProcess;
using std::chrono::seconds;
using ::testing::IsEmpty;

class LyingControllerTest : public testing::LauncherFixture {
 protected:
  /// A connection like a scaler's, after the state that it is greeted with.
  OwnedFd Control() {
    absl::StatusOr<NodeSockets> sockets = NodeSockets::Open(folder_.File("nodes"));
    EXPECT_THAT(sockets.status(), testing::IsOk());
    const absl::StatusOr<int> connection = sockets->Connect("node", 1);
    EXPECT_THAT(connection.status(), testing::IsOk());
    OwnedFd fd(connection.value_or(-1));
    EXPECT_TRUE(Receive(fd).has_value());
    return fd;
  }
  /// The next state; none if the connection has ended.
  static std::optional<SuperviseReport> Receive(const OwnedFd& fd) {
    pollfd readable = {fd.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&readable, 1, 20'000), 1);
    SuperviseReport report;
    if (::recv(fd.get(), &report, sizeof(report), MSG_DONTWAIT) != sizeof(report)) return {};
    return report;
  }
  static void Send(const OwnedFd& fd, const SuperviseCommand& command, size_t bytes) {
    ASSERT_EQ(::send(fd.get(), &command, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  }
  static void Send(const OwnedFd& fd, const SuperviseCommand& command) {
    Send(fd, command, sizeof(command));
  }
};

TEST_F(LyingControllerTest, HalfAnOrderEndsItsConnectionAlone) {
  Succeed();
  Start("sleep 1000");
  const HeldProcess node(NextPid());
  const OwnedFd liar = Control();
  Send(liar, {.kind = SuperviseCommand::kKill}, sizeof(SuperviseCommand) - 1);
  EXPECT_FALSE(Receive(liar).has_value());
  EXPECT_TRUE(node.Lives());
  Succeed();
  NextPid();
  launcher_->Stop("node", seconds(60));
  ExpectExit({.signal = SIGTERM});
}

TEST_F(LyingControllerTest, AnOrderThatIsNoneIsPassedOver) {
  Succeed();
  Start("sleep 1000");
  const HeldProcess node(NextPid());
  const OwnedFd liar = Control();
  for (const uint32_t kind : {0u, 6u, ~0u}) Send(liar, {.kind = kind});
  Send(liar, {.kind = SuperviseCommand::kLimitMemory, .memory_limit_bytes = 1ull << 40});
  const std::optional<SuperviseReport> state = Receive(liar);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->memory_limit_bytes, 1ull << 40) << "the next order is obeyed";
  EXPECT_TRUE(node.Lives());
  Send(liar, {.kind = SuperviseCommand::kStop, .timeout_ms = 60'000});
  EXPECT_EQ(Receive(liar)->signal, SIGTERM);
}

TEST_F(LyingControllerTest, OneThatNeverReadsHindersNothing) {
  Succeed();
  Start("sleep 1000");
  const HeldProcess node(NextPid());
  const OwnedFd deaf = Control();
  // Each is answered with the state, far more than the socket holds.
  for (uint64_t i = 1; i <= 2'000; ++i) {
    pollfd writable = {deaf.get(), POLLOUT, 0};
    ASSERT_EQ(::poll(&writable, 1, 20'000), 1) << "order " << i;
    Send(deaf, {.kind = SuperviseCommand::kLimitMemory, .memory_limit_bytes = i << 40});
  }
  Send(deaf, {.kind = SuperviseCommand::kKill});
  EXPECT_TRUE(node.Ended());
}

TEST_F(LyingControllerTest, TheNewestOneCounts) {
  Succeed();
  Start("sleep 1000");
  NextPid();
  const OwnedFd older = Control();
  const OwnedFd newer = Control();
  EXPECT_FALSE(Receive(older).has_value());
  Send(newer, {.kind = SuperviseCommand::kStop, .timeout_ms = 60'000});
  EXPECT_EQ(Receive(newer)->signal, SIGTERM);
}

TEST_F(LyingControllerTest, AReleaseBeforeTheExitLeavesNothing) {
  Succeed();
  Start("sleep 1000");
  const HeldProcess node(NextPid());
  const HeldProcess supervisor(testing::Supervisors().at(0));
  const OwnedFd hasty = Control();
  Send(hasty, {.kind = SuperviseCommand::kRelease});
  Send(hasty, {.kind = SuperviseCommand::kLimitMemory, .memory_limit_bytes = 1ull << 40});
  ASSERT_TRUE(Receive(hasty).has_value());
  EXPECT_TRUE(node.Lives()) << "it is no order to end";
  Send(hasty, {.kind = SuperviseCommand::kKill});
  EXPECT_EQ(Receive(hasty)->signal, SIGKILL);
  EXPECT_TRUE(supervisor.Ended());
}

/// A child with the pid that another process had, in a process group of its own; -1 if this user
/// may not choose pids.
pid_t ForkWithPid(pid_t pid) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<uint64_t>(&pid);
  arguments.set_tid_size = 1;
  const long child = ::syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (child == 0) {
    while (true) ::pause();
  }
  if (child > 0) ::setpgid(static_cast<pid_t>(child), 0);
  return static_cast<pid_t>(child);
}

TEST_F(LyingControllerTest, OrdersAfterTheExitDoNotReachWhoHasThePidNow) {
  Succeed();
  Start("exit 3");
  const pid_t pid = NextPid();
  ExpectExit({.code = 3});
  const OwnedFd late = Control();
  const HeldProcess stranger(ForkWithPid(pid));
  if (stranger.pid() < 0) GTEST_SKIP() << "this user may not choose pids";
  ASSERT_EQ(stranger.pid(), pid);
  for (const uint32_t kind :
       {SuperviseCommand::kStop, SuperviseCommand::kKill, SuperviseCommand::kDumpStacks}) {
    Send(late, {.kind = kind});
  }
  ASSERT_EQ(::kill(testing::Supervisors().at(0), SIGTERM), 0);
  Send(late, {.kind = SuperviseCommand::kLimitMemory, .memory_limit_bytes = 1});
  const std::optional<SuperviseReport> state = Receive(late);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->kind, SuperviseReport::kExited);
  EXPECT_EQ(state->code, 3);
  EXPECT_TRUE(stranger.Lives());
  EXPECT_THAT(Succeed(), ::testing::SizeIs(1)) << "the exit is still kept";
  NextPid();
  ExpectExit({.code = 3});
  launcher_->Release("node");
  EXPECT_TRUE(stranger.Lives());
}

}  // namespace
}  // namespace muster
