#include "host/processes/node_launcher.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "host/processes/process_tree.h"
#include "host/processes/spawn.h"
#include "tests/host/processes/held_process.h"
#include "tests/host/processes/next_report.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::TempDir;
using Process = testing::HeldProcess;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ProcessLauncherTest : public ::testing::Test {
 protected:
  NodeLauncher MakeLauncher() {
    return NodeLauncher({.program = MUSTER_SUPERVISE_PROGRAM, .log_directory = folder_.path()});
  }

  static NodeCommand Shell(const std::string& script) {
    return {.name = "node",
            .command = {"sh", "-c", script},
            .environment = {},
            .working_directory = ""};
  }

  /// The next report, which is one of this kind.
  template <typename Report>
  Report Next(NodeLauncher* launcher) {
    return testing::NextReport<Report>(&reports_, [this, launcher] {
      for (LaunchReport& report : launcher->Wait(milliseconds(500), {})) {
        reports_.push_back(std::move(report));
      }
    });
  }
  /// The pids that the node writes.
  std::vector<Process> ReadPids(size_t count, NodeLauncher* launcher) {
    return testing::ReadPids(folder_.File("pids"), count, [launcher] {
      if (launcher != nullptr) {
        launcher->Wait(milliseconds(10), {});
      } else {
        ::poll(nullptr, 0, 10);
      }
    });
  }
  std::string Family() { return testing::Family(folder_.File("pids")); }

  TempDir folder_;
  std::deque<LaunchReport> reports_;
};

TEST(ImageOfTest, TheOwnProgramIsTheImageThatRuns) {
  EXPECT_THAT(OwnProgram(), ::testing::StartsWith("/"));
  EXPECT_EQ(ImageOf(OwnProgram()), "/proc/self/exe");
  EXPECT_EQ(ImageOf("/bin/sh"), "/bin/sh");
  EXPECT_EQ(ImageOf("sh"), "sh");
}

TEST(SupervisorEnvironmentTest, WhatAnotherRunAddedIsNotHandedOn) {
  ::setenv("MUSTER_ADDED_LD_PRELOAD", "other", 1);
  const std::vector<std::string> environment = SupervisorEnvironment({{"HOME", "/x"}});
  ::unsetenv("MUSTER_ADDED_LD_PRELOAD");
  EXPECT_THAT(environment, ::testing::Contains("MUSTER_ADDED_HOME=/x"));
  EXPECT_THAT(environment, ::testing::Not(::testing::Contains("MUSTER_ADDED_LD_PRELOAD=other")));
}

TEST_F(ProcessLauncherTest, ReportsStartAndExit) {
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("echo hello; echo trouble >&2; exit 7")), IsOk());
  const NodeStarted started = Next<NodeStarted>(&launcher);
  EXPECT_GT(started.pid, 0u);
  const NodeExited exited = Next<NodeExited>(&launcher);
  EXPECT_EQ(exited.pid, started.pid);
  EXPECT_EQ(exited.exit, (ExitStatus{.signal = 0, .code = 7}));
  EXPECT_FALSE(launcher.Has("node"));
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string log, ReadFile(launcher.LogPath("node"), 10'000));
  EXPECT_THAT(log, HasSubstr("hello\ntrouble\n"));
}

TEST_F(ProcessLauncherTest, ReportsTheSignal) {
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("kill -SEGV $$")), IsOk());
  Next<NodeStarted>(&launcher);
  EXPECT_EQ(Next<NodeExited>(&launcher).exit, (ExitStatus{.signal = SIGSEGV}));
}

TEST_F(ProcessLauncherTest, EnvironmentAndFolder) {
  NodeLauncher launcher = MakeLauncher();
  NodeCommand command = Shell("echo $MUSTER_NODE in $(pwd)");
  command.environment["MUSTER_NODE"] = "worker-9";
  command.working_directory = "/usr";
  ASSERT_THAT(launcher.Start(command), IsOk());
  Next<NodeStarted>(&launcher);
  Next<NodeExited>(&launcher);
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string log, ReadFile(launcher.LogPath("node"), 10'000));
  EXPECT_THAT(log, HasSubstr("worker-9 in /usr\n"));
}

// A library that is preloaded into a trainer (for example an allocator) is not loaded into its
// supervising process.
TEST_F(ProcessLauncherTest, EnvironmentIsNotTheSupervisors) {
  NodeLauncher launcher = MakeLauncher();
  NodeCommand command = Shell(
      "echo own:$TRAINERS_OWN; tr '\\0' '\\n' < /proc/$PPID/environ | grep -x TRAINERS_OWN=yes");
  command.environment["TRAINERS_OWN"] = "yes";
  ASSERT_THAT(launcher.Start(command), IsOk());
  Next<NodeStarted>(&launcher);
  EXPECT_EQ(Next<NodeExited>(&launcher).exit.code, 1);  // grep's: nothing is found
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string log, ReadFile(launcher.LogPath("node"), 10'000));
  EXPECT_THAT(log, HasSubstr("own:yes\n"));
}

// What a run writes is private; what a trainer writes is as its user wants it.
TEST_F(ProcessLauncherTest, ACommandHasTheUsersUmask) {
  const mode_t former = ::umask(027);
  KeepFilesPrivate();
  EXPECT_EQ(::umask(0077), 0077u);
  KeepFilesPrivate();  // as a process below does
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("echo umask:$(umask) noted:$MUSTER_USERS_UMASK.")), IsOk());
  Next<NodeStarted>(&launcher);
  Next<NodeExited>(&launcher);
  ::umask(former);
  ::unsetenv("MUSTER_USERS_UMASK");
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string log, ReadFile(launcher.LogPath("node"), 10'000));
  EXPECT_THAT(log, HasSubstr("umask:0027 noted:.\n"));
}

TEST_F(ProcessLauncherTest, CommandThatIsMissingOrNotExecutable) {
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start({.name = "a",
                              .command = {"/no/such/trainer"},
                              .environment = {},
                              .working_directory = ""}),
              IsOk());
  const NodeExited missing = Next<NodeExited>(&launcher);
  EXPECT_EQ(missing.exit.code, 127);
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string log, ReadFile(launcher.LogPath("a"), 10'000));
  EXPECT_THAT(log, HasSubstr("/no/such/trainer"));
  const std::string data = folder_.File("not-a-program");
  ASSERT_THAT(WriteFileAtomically(data, "1,2,3"), IsOk());
  ASSERT_THAT(
      launcher.Start({.name = "b", .command = {data}, .environment = {}, .working_directory = ""}),
      IsOk());
  const NodeExited no_program = Next<NodeExited>(&launcher);
  EXPECT_EQ(no_program.exit.code, 126);
  EXPECT_FALSE(no_program.not_started) << "waiting does not help";
}

TEST_F(ProcessLauncherTest, WhatTheMachineWasTooShortForIsTold) {
  NodeLauncher launcher = MakeLauncher();
  NodeCommand command = Shell("exit 0");
  command.environment["DESCRIPTORS_MAX"] = "4";
  ASSERT_THAT(launcher.Start(command), IsOk());
  const NodeExited report = Next<NodeExited>(&launcher);
  EXPECT_EQ(report.pid, 0u);
  EXPECT_EQ(report.exit.code, 126);
  EXPECT_TRUE(report.not_started);
}

TEST_F(ProcessLauncherTest, StopReachesTheCommandBehindAShell) {
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("sleep 1000; true")), IsOk());
  Next<NodeStarted>(&launcher);
  launcher.Stop("node", seconds(60));
  EXPECT_EQ(Next<NodeExited>(&launcher).exit, (ExitStatus{.signal = SIGTERM}));
}

TEST_F(ProcessLauncherTest, StopKillsWhatDoesNotEndInTime) {
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell(Family())), IsOk());
  Next<NodeStarted>(&launcher);
  const std::vector<Process> family = ReadPids(4, &launcher);
  launcher.Stop("node", milliseconds(10));
  EXPECT_EQ(Next<NodeExited>(&launcher).exit, (ExitStatus{.signal = SIGKILL}));
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
}

TEST_F(ProcessLauncherTest, KillEndsAStoppedNode) {
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("sleep 1000")), IsOk());
  const NodeStarted started = Next<NodeStarted>(&launcher);
  ASSERT_EQ(::kill(static_cast<pid_t>(started.pid), SIGSTOP), 0);
  launcher.Kill("node");
  EXPECT_EQ(Next<NodeExited>(&launcher).exit, (ExitStatus{.signal = SIGKILL}));
}

// Any process of the user may send it.
TEST_F(ProcessLauncherTest, TheSignalOfTheParentsDeathIsNoProofOfIt) {
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("sleep 1000")), IsOk());
  Next<NodeStarted>(&launcher);
  ASSERT_EQ(::kill(testing::Supervisors().at(0), SIGUSR1), 0);
  launcher.Stop("node", seconds(60));
  EXPECT_EQ(Next<NodeExited>(&launcher).exit, (ExitStatus{.signal = SIGTERM}));
}

TEST_F(ProcessLauncherTest, SignalsToTheSupervisingProcessStopTheNode) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    NodeLauncher launcher = MakeLauncher();
    ASSERT_THAT(launcher.Start(Shell("sleep 1000")), IsOk());
    Next<NodeStarted>(&launcher);
    ASSERT_EQ(::kill(testing::Supervisors().at(0), signal), 0);
    EXPECT_EQ(Next<NodeExited>(&launcher).exit, (ExitStatus{.signal = SIGTERM}));
  }
}

TEST_F(ProcessLauncherTest, WhatTheNodeLeftBehindIsGoneAtItsExit) {
  NodeLauncher launcher = MakeLauncher();
  // The grandchild holds the log's pipe, too, and ends only when it is killed.
  ASSERT_THAT(launcher.Start(Shell("(trap '' TERM; setsid sleep 1000 & echo $! >> " +
                                   folder_.File("pids") + "); echo last words; exit 3")),
              IsOk());
  Next<NodeStarted>(&launcher);
  const NodeExited exited = Next<NodeExited>(&launcher);
  EXPECT_EQ(exited.exit, (ExitStatus{.code = 3}));
  EXPECT_EQ(exited.last_words, "last words\n");
  for (const Process& process : ReadPids(1, nullptr)) EXPECT_FALSE(process.Lives());
}

TEST_F(ProcessLauncherTest, ExitOfTheNodeTakesItsFamilyAlong) {
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell(Family())), IsOk());
  const NodeStarted started = Next<NodeStarted>(&launcher);
  const std::vector<Process> family = ReadPids(4, &launcher);
  ASSERT_EQ(::kill(static_cast<pid_t>(started.pid), SIGKILL), 0);
  EXPECT_EQ(Next<NodeExited>(&launcher).exit, (ExitStatus{.signal = SIGKILL}));
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
}

TEST_F(ProcessLauncherTest, DestructorLeavesNothing) {
  std::vector<Process> family;
  {
    NodeLauncher launcher = MakeLauncher();
    ASSERT_THAT(launcher.Start(Shell(Family())), IsOk());
    Next<NodeStarted>(&launcher);
    family = ReadPids(4, &launcher);
  }
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
  EXPECT_TRUE(Descendants({}).empty());
}

TEST_F(ProcessLauncherTest, DeathOfTheSupervisingProcessTakesTheFamilyAlong) {
  NodeLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell(Family())), IsOk());
  Next<NodeStarted>(&launcher);
  const std::vector<Process> family = ReadPids(4, &launcher);
  const std::vector<pid_t> supervisors = testing::Supervisors();
  ASSERT_EQ(supervisors.size(), 1u);
  ASSERT_EQ(::kill(supervisors[0], SIGKILL), 0);
  const NodeExited report = Next<NodeExited>(&launcher);
  EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
}

/// The case that the whole construction is for: the launcher gets SIGKILL.
TEST_F(ProcessLauncherTest, SigkillOfTheLauncherLeavesNoOrphan) {
  const pid_t launcher = ::fork();
  ASSERT_GE(launcher, 0);
  if (launcher == 0) {
    const std::string script = Family();
    const std::string folder = folder_.path();
    ::execl(MUSTER_SUPERVISE_PROGRAM, "supervise_program", "launch", folder.c_str(), "sh", "-c",
            script.c_str(), nullptr);
    ::_exit(1);
  }
  const std::vector<Process> family = ReadPids(4, nullptr);
  ASSERT_EQ(::kill(launcher, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(launcher, &status, 0), launcher);
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
}

/// Like `muster run`: the scaler and its supervising process are killed, and the nodes continue.
class ScalerLauncherTest : public ProcessLauncherTest {
 protected:
  ScalerLauncherTest() {
    launcher_.emplace(NodeLauncher::Options{.program = MUSTER_SUPERVISE_PROGRAM,
                                            .log_directory = folder_.path(),
                                            .spare_supervisors = true});
    EXPECT_EQ(::pipe2(life_, O_CLOEXEC), 0);
  }
  ~ScalerLauncherTest() override {
    ::close(life_[0]);
    EndLife();
  }
  void EndLife() {
    if (life_[1] >= 0) ::close(std::exchange(life_[1], -1));
  }

  /// The scaler, with a node that is a family; its pid.
  pid_t StartScaler() {
    EXPECT_THAT(
        launcher_->Start({.name = "scaler",
                          .command = {MUSTER_SUPERVISE_PROGRAM, "keep", std::to_string(life_[0]),
                                      folder_.path(), folder_.File("nodes"), "sh", "-c", Family()},
                          .environment = {},
                          .inherited_fds = {life_[0]},
                          .keep_descendants = true}),
        IsOk());
    return static_cast<pid_t>(Next<NodeStarted>(&*launcher_).pid);
  }

  int life_[2];
  std::optional<NodeLauncher> launcher_;
};

TEST_F(ScalerLauncherTest, NodesOutliveTheScaler) {
  const pid_t scaler = StartScaler();
  const std::vector<Process> family = ReadPids(4, &*launcher_);
  ASSERT_EQ(::kill(scaler, SIGKILL), 0);
  const NodeExited report = Next<NodeExited>(&*launcher_);
  EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
  launcher_->Sweep();
  for (const Process& process : family) EXPECT_TRUE(process.Lives());
  EndLife();
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
}

TEST_F(ScalerLauncherTest, NodesOutliveTheScalersSupervisingProcess) {
  const Process scaler(StartScaler());
  const std::vector<Process> family = ReadPids(4, &*launcher_);
  pid_t of_scaler = -1;
  for (const pid_t pid : testing::Supervisors()) {
    if (!IsSupervisor(pid)) of_scaler = pid;
  }
  ASSERT_GT(of_scaler, 0);
  ASSERT_EQ(::kill(of_scaler, SIGKILL), 0);
  EXPECT_EQ(Next<NodeExited>(&*launcher_).exit, (ExitStatus{.signal = SIGKILL}));
  EXPECT_TRUE(scaler.Ended()) << "before another may be started";
  launcher_->Sweep();
  for (const Process& process : family) EXPECT_TRUE(process.Lives());
}

TEST_F(ScalerLauncherTest, SweepKillsWhatAKilledSupervisingProcessLeft) {
  const pid_t scaler = StartScaler();
  const std::vector<Process> family = ReadPids(4, &*launcher_);
  ASSERT_EQ(::kill(scaler, SIGKILL), 0);
  Next<NodeExited>(&*launcher_);
  const std::vector<pid_t> supervisors = testing::Supervisors();
  ASSERT_EQ(supervisors.size(), 1u);
  const Process supervisor(supervisors[0]);
  ASSERT_EQ(::kill(supervisor.pid(), SIGKILL), 0);
  ASSERT_TRUE(supervisor.Ended());
  // One that is swept up leaves its children to be swept up.
  for (const Process& process : family) {
    for (int i = 0; i < 2'000 && process.Lives(); ++i) {
      launcher_->Sweep();
      ::poll(nullptr, 0, 10);
    }
    EXPECT_FALSE(process.Lives());
  }
}

TEST_F(ScalerLauncherTest, DestructionLeavesNothing) {
  StartScaler();
  const std::vector<Process> family = ReadPids(4, &*launcher_);
  launcher_.reset();
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
}

TEST_F(ScalerLauncherTest, ChildrenThatWereThereBeforeAreSpared) {
  // A shell that becomes `muster run` by exec has started it. Its own child is an orphan later.
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::execlp("sh", "sh", "-c", "sleep 1000 & echo $! > \"$0\"", folder_.File("other").c_str(),
             nullptr);
    ::_exit(127);
  }
  ASSERT_GT(shell, 0);
  std::vector<Process> orphan = testing::ReadPids(folder_.File("other"), 1);
  ASSERT_EQ(orphan.size(), 1u);
  const pid_t other = ::fork();
  if (other == 0) {
    while (true) ::pause();
  }
  const Process child(other);
  StartScaler();
  const std::vector<Process> family = ReadPids(4, &*launcher_);
  launcher_->Sweep();
  launcher_->Sweep();
  launcher_.reset();
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
  EXPECT_TRUE(orphan[0].Lives());
  EXPECT_TRUE(child.Lives());
  for (const pid_t pid : {orphan[0].pid(), other}) ::kill(pid, SIGKILL);
  KillDescendants({});
}

}  // namespace
}  // namespace muster
