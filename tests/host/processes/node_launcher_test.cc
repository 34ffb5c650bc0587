#include "host/processes/node_launcher.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/host/processes/held_process.h"
#include "tests/host/processes/launcher_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::HeldProcess;
using ::muster::testing::IsOk;
using ::muster::testing::Supervisors;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NodeLauncherTest : public testing::LauncherFixture {};

TEST_F(NodeLauncherTest, ReportsStartAndExitAndLetsGoWhenReleased) {
  EXPECT_THAT(Succeed(), IsEmpty());
  Start("echo hello; exit 7");
  const NodeStarted started = Next<NodeStarted>();
  EXPECT_GT(started.pid, 0u);
  const NodeExited exited = Next<NodeExited>();
  EXPECT_EQ(exited.pid, started.pid);
  EXPECT_EQ(exited.exit, (ExitStatus{.signal = 0, .code = 7}));
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string log, ReadFile(launcher_->LogPath("node"), 10'000));
  EXPECT_THAT(log, HasSubstr("hello\n"));
  EXPECT_TRUE(launcher_->Has("node"));
  const HeldProcess supervisor(Supervisors().at(0));
  EXPECT_TRUE(supervisor.Lives());
  launcher_->Release("node");
  EXPECT_TRUE(supervisor.Ended());
  EXPECT_FALSE(launcher_->Has("node"));
  Start("exit 0", 2);
  EXPECT_THAT(Succeed(), ElementsAre(FoundNode{"node", 2, true}));
}

TEST_F(NodeLauncherTest, CommandThatIsMissing) {
  Succeed();
  ASSERT_THAT(launcher_->Start({.name = "a", .command = {"/no/such/trainer"}, .environment = {}},
                               {.start = 1}),
              IsOk());
  const NodeExited missing = Next<NodeExited>();
  EXPECT_EQ(missing.pid, 0u);
  EXPECT_EQ(missing.exit.code, 127);
  EXPECT_FALSE(missing.not_started);
}

TEST_F(NodeLauncherTest, ExitWaitsForSuccessorsUntilItIsReleased) {
  Succeed();
  Start("kill -SEGV $$");
  // Nobody has heard a word of it.
  for (int life = 0; life < 3; ++life) {
    EXPECT_THAT(Succeed(), ElementsAre(FoundNode{"node", 1, true}));
    EXPECT_GT(NextPid(), 0);
    ExpectExit({.signal = SIGSEGV});
  }
  launcher_->Release("node");
  EXPECT_THAT(Succeed(), IsEmpty());
}

TEST_F(NodeLauncherTest, NodeRunsOnAndObeysASuccessor) {
  Succeed();
  Start("sleep 1000");
  const NodeStarted started = Next<NodeStarted>();
  const HeldProcess node(static_cast<pid_t>(started.pid));
  EXPECT_THAT(Succeed(), ElementsAre(FoundNode{"node", 1, true}));
  EXPECT_TRUE(launcher_->Has("node"));
  EXPECT_EQ(Next<NodeStarted>().pid, started.pid);
  EXPECT_TRUE(node.Lives());
  launcher_->Stop("node", seconds(60));
  ExpectExit({.signal = SIGTERM});
}

TEST_F(NodeLauncherTest, StopKillsWhatDoesNotEndInTime) {
  Succeed();
  Start(Family());
  Next<NodeStarted>();
  const std::vector<HeldProcess> family = FamilyProcesses();
  Succeed();
  Next<NodeStarted>();
  launcher_->Stop("node", milliseconds(10));
  ExpectExit({.signal = SIGKILL});
  for (const HeldProcess& process : family) EXPECT_FALSE(process.Lives()) << "before the report";
}

TEST_F(NodeLauncherTest, EndOfLifeEndsEverythingExitsIncluded) {
  Succeed();
  Start(Family());
  Next<NodeStarted>();
  const std::vector<HeldProcess> family = FamilyProcesses();
  ASSERT_THAT(
      launcher_->Start({.name = "over", .command = {"true"}, .environment = {}}, {.start = 1}),
      IsOk());
  Next<NodeStarted>();
  ExpectExit({});
  launcher_.reset();
  std::vector<HeldProcess> all;
  for (const pid_t pid : Supervisors()) all.emplace_back(pid);
  EXPECT_EQ(all.size(), 2u);
  EndLife();
  for (const HeldProcess& process : family) EXPECT_TRUE(process.Ended());
  for (const HeldProcess& process : all) EXPECT_TRUE(process.Ended());
}

TEST_F(NodeLauncherTest, DeathOfTheSupervisingProcessTakesTheFamilyAlong) {
  Succeed();
  Start(Family());
  const NodeStarted started = Next<NodeStarted>();
  const std::vector<HeldProcess> family = FamilyProcesses();
  ASSERT_EQ(::kill(Supervisors().at(0), SIGKILL), 0);
  const NodeExited report = Next<NodeExited>();
  EXPECT_EQ(report.pid, started.pid);
  EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
  for (const HeldProcess& process : family) EXPECT_FALSE(process.Lives());
  EXPECT_FALSE(launcher_->Has("node"));
  EXPECT_THAT(Succeed(), IsEmpty());
}

TEST_F(NodeLauncherTest, DeathOfAnAdoptedSupervisingProcess) {
  Succeed();
  Start("sleep 1000");
  const HeldProcess node(NextPid());
  Succeed();
  Next<NodeStarted>();
  ASSERT_EQ(::kill(Supervisors().at(0), SIGKILL), 0);
  ExpectExit({.signal = SIGKILL});
  EXPECT_FALSE(node.Lives()) << "before the report";
}

TEST_F(NodeLauncherTest, DeadSocketsAreFoundOnce) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeSockets sockets, NodeSockets::Open(folder_.File("nodes")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const int listening, sockets.Listen("node", 4));
  ::close(listening);
  EXPECT_THAT(Succeed(), ElementsAre(FoundNode{"node", 4, false}));
  EXPECT_THAT(Succeed(), IsEmpty());
}

TEST_F(NodeLauncherTest, DiscardedNodesGo) {
  Succeed();
  // An order counts even if its sender ends at once, whether or not the answer arrived before.
  for (uint32_t start = 1; start <= 10; ++start) {
    Start("sleep 1000", start);
    const HeldProcess node(NextPid());
    const HeldProcess supervisor(Supervisors().at(0));
    const std::vector<FoundNode> found = Succeed();
    ASSERT_EQ(found.size(), 1u);
    launcher_->Discard(found[0]);
    EXPECT_TRUE(node.Ended());
    EXPECT_TRUE(supervisor.Ended());
    EXPECT_FALSE(launcher_->Has("node"));
  }
}

TEST_F(NodeLauncherTest, ControllerThatGoesWithoutReadingIsObeyed) {
  Succeed();
  Start("sleep 1000");
  const HeldProcess node(NextPid());
  launcher_.reset();
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeSockets sockets, NodeSockets::Open(folder_.File("nodes")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const int connection, sockets.Connect("node", 1));
  pollfd greeted = {connection, POLLIN, 0};
  ASSERT_EQ(::poll(&greeted, 1, 20'000), 1);
  const pid_t supervisor = Supervisors().at(0);
  ASSERT_EQ(::kill(supervisor, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(supervisor, &status, WUNTRACED), supervisor);
  const SuperviseCommand command{.kind = SuperviseCommand::kKill, .timeout_ms = 0};
  ASSERT_EQ(::send(connection, &command, sizeof(command), 0),
            static_cast<ssize_t>(sizeof(command)));
  ::close(connection);
  ASSERT_EQ(::kill(supervisor, SIGCONT), 0);
  EXPECT_TRUE(node.Ended());
}

TEST_F(NodeLauncherTest, NodesGetNoDescriptorsButTheirOwn) {
  Succeed();
  // Open over an exec, as a library may leave them.
  const OwnedFd leaked(::fcntl(life_[1], F_DUPFD, 70));
  const OwnedFd named(::fcntl(life_[1], F_DUPFD_CLOEXEC, 90));
  ASSERT_THAT(launcher_->Start({.name = "node",
                                .command = {"ls", "/proc/self/fd"},
                                .environment = {},
                                .inherited_fds = {named.get(), -1}},
                               {.start = 1}),
              IsOk());
  Next<NodeStarted>();
  ExpectExit({});
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string log, ReadFile(launcher_->LogPath("node"), 10'000));
  // 3 is the folder that is listed.
  EXPECT_THAT(log, EndsWith(fmt::format("\n0\n1\n2\n3\n{}\n", named.get())));
  const std::string of_supervisor = fmt::format("/proc/{}/fd/", Supervisors().at(0));
  EXPECT_NE(::access((of_supervisor + std::to_string(leaked.get())).c_str(), F_OK), 0);
  EXPECT_EQ(::access((of_supervisor + std::to_string(named.get())).c_str(), F_OK), 0);
}

TEST_F(NodeLauncherTest, ASecondStopDoesNotMoveTheKillLater) {
  Succeed();
  Start(Family());
  Next<NodeStarted>();
  const std::vector<HeldProcess> family = FamilyProcesses();
  launcher_->Stop("node", milliseconds(10));
  launcher_->Stop("node", std::chrono::hours(1));
  ExpectExit({.signal = SIGKILL});
}

TEST_F(NodeLauncherTest, AConnectionOfAnotherUserIsNoController) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  Succeed();
  Start("sleep 1000");
  const HeldProcess node(NextPid());
  // As a folder that everybody may use would let it.
  for (const std::string& path : {folder_.path(), folder_.File("nodes")}) {
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  }
  ASSERT_EQ(::chmod(folder_.File("nodes/node.1.sock").c_str(), 0777), 0);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeSockets sockets, NodeSockets::Open(folder_.File("nodes")));
  ASSERT_EQ(::seteuid(65'534), 0);
  const absl::StatusOr<int> foreign = sockets.Connect("node", 1);
  ASSERT_EQ(::seteuid(0), 0);
  MUSTER_ASSERT_OK_AND_ASSIGN(const int fd, foreign);
  const OwnedFd owned(fd);
  const SuperviseCommand kill{.kind = SuperviseCommand::kKill};
  ::send(fd, &kill, sizeof(kill), MSG_NOSIGNAL);
  pollfd closed = {fd, POLLIN, 0};
  ASSERT_EQ(::poll(&closed, 1, 20'000), 1);
  SuperviseReport report;
  EXPECT_LE(::recv(fd, &report, sizeof(report), MSG_DONTWAIT), 0) << "it is told nothing";
  EXPECT_TRUE(node.Lives());
  launcher_->Stop("node", seconds(60));
  ExpectExit({.signal = SIGTERM});
}

}  // namespace
}  // namespace muster
