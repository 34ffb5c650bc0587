#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "host/processes/log_reader.h"
#include "tests/host/processes/launcher_fixture.h"

/// What nodes, their supervising processes and the disk may do wrong to a launcher.
namespace muster {
namespace {

using ::muster::testing::HeldProcess;
using ::muster::testing::IsOk;
using ::muster::testing::Supervisors;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NodeFaultsTest : public testing::LauncherFixture {
 protected:
  std::string LogPath() const { return folder_.File("node.log"); }
  std::string Log() const { return ReadFile(LogPath(), 1 << 20).value_or(""); }
};

TEST_F(NodeFaultsTest, AHalfLineIsNoPartOfTheNextLife) {
  Succeed();
  Start("echo first; printf half; kill -KILL $$");
  NextPid();
  EXPECT_EQ(Next<NodeExited>().last_words, "first\nhalf");
  launcher_->Release("node");
  Start("exit 3", 2);
  NextPid();
  EXPECT_EQ(Next<NodeExited>().last_words, "") << "it has said nothing";
  EXPECT_THAT(Log(), HasSubstr("first\nhalf\n--- muster: node started"));
}

TEST_F(NodeFaultsTest, OurLinesAreNoPartOfAHalfLine) {
  Succeed();
  Start("printf half; kill -STOP $$; exit 3");
  const HeldProcess node(NextPid());
  for (int i = 0; i < 2'000 && !Log().ends_with("half"); ++i) launcher_->Wait(milliseconds(10), {});
  ASSERT_THAT(launcher_->DumpStacks("node"), IsOk());
  for (int i = 0; i < 2'000 && Log().find("end of the stacks") == std::string::npos; ++i) {
    launcher_->Wait(milliseconds(10), {});
  }
  EXPECT_THAT(Log(), HasSubstr("half\n... muster: stacks of node were requested"));
  EXPECT_EQ(LastWords(LogPath(), 20, 1'000), "half\n");
  ASSERT_EQ(::kill(node.pid(), SIGCONT), 0);
  ExpectExit({.code = 3});
}

TEST_F(NodeFaultsTest, AFullDiskForTheLogHindersNoNode) {
  ASSERT_EQ(::symlink("/dev/full", LogPath().c_str()), 0);
  Succeed();
  // More than a pipe holds.
  Start("head -c 1000000 /dev/zero; exit 3");
  NextPid();
  ExpectExit({.code = 3});
}

TEST_F(NodeFaultsTest, ALogThatCannotBeOpenedHindersNoNode) {
  ASSERT_EQ(::mkdir(LogPath().c_str(), 0700), 0);
  Succeed();
  Start("head -c 1000000 /dev/zero; exit 3");
  NextPid();
  ASSERT_THAT(launcher_->DumpStacks("node"), IsOk());
  const NodeExited exited = Next<NodeExited>();
  EXPECT_EQ(exited.exit, (ExitStatus{.code = 3}));
  EXPECT_EQ(exited.last_words, "");
}

TEST_F(NodeFaultsTest, AStopReachesTheProgramBehindAShellThatHearsIt) {
  Succeed();
  Start(
      "trap : TERM; "
      "sh -c 'trap \"echo told; exit 0\" TERM; echo ready; sleep 1000 & wait' & wait; wait; exit "
      "3");
  NextPid();
  for (int i = 0; i < 2'000 && !Log().ends_with("ready\n"); ++i) {
    launcher_->Wait(milliseconds(10), {});
  }
  launcher_->Stop("node", seconds(60));
  ExpectExit({.code = 3});
  EXPECT_THAT(Log(), HasSubstr("told\n"));
}

TEST_F(NodeFaultsTest, StacksOfVeryManyProcessesAreCut) {
  Succeed();
  Start("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do sleep 1000 & done; wait");
  const pid_t shell = NextPid();
  for (int i = 0; i < 2'000 && ProcessesBelow(shell).size() < 17; ++i) {
    launcher_->Wait(milliseconds(10), {});
  }
  ASSERT_THAT(launcher_->DumpStacks("node"), IsOk());
  for (int i = 0; i < 2'000 && Log().find("requested") == std::string::npos; ++i) {
    launcher_->Wait(milliseconds(10), {});
  }
  EXPECT_THAT(Log(), HasSubstr("stacks of node were requested: 16 of its 18 processes\n"));
}

TEST_F(NodeFaultsTest, AProgramThatCannotBeStartedLeavesNoSocket) {
  MUSTER_ASSERT_OK_AND_ASSIGN(NodeSockets sockets, NodeSockets::Open(folder_.File("nodes")));
  launcher_.emplace(
      NodeLauncher::Options{.program = "/no/such/muster", .log_directory = folder_.path()},
      std::move(sockets));
  const absl::Status started =
      launcher_->Start({.name = "node", .command = {"true"}}, {.start = 1});
  EXPECT_THAT(started, testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such/muster")));
  EXPECT_FALSE(launcher_->Has("node"));
  EXPECT_THAT(Succeed(), IsEmpty());
}

TEST_F(NodeFaultsTest, AReleasedSupervisingProcessIsReaped) {
  Succeed();
  Start("exit 3");
  NextPid();
  ExpectExit({.code = 3});
  const pid_t supervisor = Supervisors().at(0);
  launcher_->Release("node");
  for (int i = 0; i < 2'000 && ReadStat(supervisor).has_value(); ++i) {
    launcher_->Wait(milliseconds(10), {});
  }
  EXPECT_FALSE(ReadStat(supervisor).has_value());
}

TEST_F(NodeFaultsTest, AStopAtOnceIsObeyed) {
  Succeed();
  Start("sleep 1000");
  launcher_->Stop("node", seconds(60));
  NextPid();
  ExpectExit({.signal = SIGTERM});
}

TEST_F(NodeFaultsTest, TheCommandThatClosesItsOutputRunsOn) {
  Succeed();
  Start("echo words; exec >&- 2>&-; sleep 1000");
  const HeldProcess node(NextPid());
  for (int i = 0; i < 2'000 && !Log().ends_with("words\n"); ++i) {
    launcher_->Wait(milliseconds(10), {});
  }
  Succeed();
  NextPid();
  EXPECT_TRUE(node.Lives());
  launcher_->Stop("node", seconds(60));
  ExpectExit({.signal = SIGTERM});
}

TEST_F(NodeFaultsTest, ASupervisingProcessThatDiesAfterTheExitChangesNothing) {
  Succeed();
  Start("exit 3");
  NextPid();
  ExpectExit({.code = 3});
  const HeldProcess supervisor(Supervisors().at(0));
  ASSERT_EQ(::kill(supervisor.pid(), SIGKILL), 0);
  EXPECT_TRUE(supervisor.Ended());
  EXPECT_THAT(launcher_->TakeReports(), IsEmpty()) << "the exit is told once";
  EXPECT_TRUE(launcher_->Has("node"));
  launcher_->Release("node");
  launcher_->Sweep();
  EXPECT_THAT(Succeed(), IsEmpty());
}

TEST_F(NodeFaultsTest, OfTwoLivesTheNewerOneCounts) {
  Succeed();
  Start("sleep 1000", 9);
  const HeldProcess older(NextPid());
  Replace();  // it did not look for what was there
  Start("sleep 1000", 10);
  const HeldProcess newer(NextPid());
  EXPECT_THAT(Succeed(), ElementsAre(FoundNode{"node", 9, true}, FoundNode{"node", 10, true}));
  EXPECT_EQ(NextPid(), newer.pid());
  launcher_->Discard({"node", 9, true});
  EXPECT_TRUE(older.Ended());
  EXPECT_TRUE(newer.Lives());
  launcher_->Stop("node", seconds(60));
  ExpectExit({.signal = SIGTERM});
}

TEST_F(NodeFaultsTest, AStoppedSupervisingProcessIsFoundAndObeysLater) {
  Succeed();
  Start("sleep 1000");
  NextPid();
  const pid_t supervisor = Supervisors().at(0);
  ASSERT_EQ(::kill(supervisor, SIGSTOP), 0);
  EXPECT_THAT(Succeed(), ElementsAre(FoundNode{"node", 1, true}));
  EXPECT_THAT(launcher_->TakeReports(), IsEmpty());
  EXPECT_EQ((*launcher_->Look("node"))->supervisor_pid, 0) << "it has not spoken yet";
  launcher_->Stop("node", seconds(60));
  ASSERT_EQ(::kill(supervisor, SIGCONT), 0);
  NextPid();
  ExpectExit({.signal = SIGTERM});
}

}  // namespace
}  // namespace muster
