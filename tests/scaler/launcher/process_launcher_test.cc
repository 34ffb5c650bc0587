#include "scaler/launcher/process_launcher.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>

#include "base/file.h"
#include "scaler/launcher/pidfd.h"
#include "scaler/launcher/process_tree.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::TempDir;
using Kind = ProcessReport::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A process, held by a pidfd: pid reuse cannot mislead the test.
class Process {
 public:
  explicit Process(pid_t pid) : fd_(::pidfd_open(pid, 0)) {}
  ~Process() {
    if (fd_ >= 0) ::close(fd_);
  }
  Process(Process&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  /// Waits, up to a bound that only a failing test reaches.
  bool Ended() const {
    if (fd_ < 0) return true;
    pollfd poll_fd = {fd_, POLLIN, 0};
    return ::poll(&poll_fd, 1, 20'000) == 1;
  }

 private:
  int fd_;
};

class ProcessLauncherTest : public ::testing::Test {
 protected:
  ProcessLauncher MakeLauncher() {
    return ProcessLauncher({.program = MUSTER_SUPERVISE_PROGRAM, .log_directory = folder_.path()});
  }

  static NodeCommand Shell(const std::string& script) {
    return {.name = "node",
            .command = {"sh", "-c", script},
            .environment = {},
            .working_directory = ""};
  }

  static ProcessReport Next(ProcessLauncher* launcher) {
    for (int i = 0; i < 100; ++i) {
      std::vector<ProcessReport> reports = launcher->Wait(milliseconds(500), {});
      if (!reports.empty()) return reports.front();
    }
    ADD_FAILURE() << "no report came";
    return {};
  }

  /// Numbers that the node writes, one per line, until there are `count`.
  std::vector<Process> ReadPids(size_t count, ProcessLauncher* launcher) {
    std::vector<Process> processes;
    for (int i = 0; i < 2000; ++i) {
      absl::StatusOr<std::string> text = ReadFile(folder_.File("pids"), 1 << 20);
      if (text.ok() && static_cast<size_t>(std::count(text->begin(), text->end(), '\n')) >= count) {
        const char* at = text->data();
        for (size_t n = 0; n < count; ++n) {
          pid_t pid = 0;
          at = std::from_chars(at, text->data() + text->size(), pid).ptr + 1;
          EXPECT_GT(pid, 0);
          processes.emplace_back(pid);
        }
        return processes;
      }
      if (launcher != nullptr) {
        launcher->Wait(milliseconds(10), {});
      } else {
        ::poll(nullptr, 0, 10);
      }
    }
    ADD_FAILURE() << "the pids never came";
    return processes;
  }

  /// A node with a child, a grandchild in a session of its own and an orphaned one, all told to
  /// ignore SIGTERM and SIGHUP.
  std::string Family() {
    const std::string file = folder_.File("pids");
    return fmt::format(
        "trap '' TERM HUP; sleep 1000 & echo $! >> {0}; "
        "setsid sh -c 'echo $$ >> {0}; sleep 1000 & wait' & "
        "(setsid sleep 1000 & echo $! >> {0}); echo $$ >> {0}; wait",
        file);
  }

  TempDir folder_;
};

TEST_F(ProcessLauncherTest, ReportsStartAndExit) {
  ProcessLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("echo hello; echo trouble >&2; exit 7")), IsOk());
  const ProcessReport started = Next(&launcher);
  EXPECT_EQ(started.kind, Kind::kStarted);
  EXPECT_GT(started.pid, 0);
  const ProcessReport exited = Next(&launcher);
  EXPECT_EQ(exited.kind, Kind::kExited);
  EXPECT_EQ(exited.pid, started.pid);
  EXPECT_EQ(exited.exit, (ExitStatus{.signal = 0, .code = 7}));
  EXPECT_FALSE(launcher.running("node"));
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string log, ReadFile(launcher.LogPath("node"), 10'000));
  EXPECT_THAT(log, HasSubstr("hello\ntrouble\n"));
}

TEST_F(ProcessLauncherTest, ReportsTheSignal) {
  ProcessLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("kill -SEGV $$")), IsOk());
  Next(&launcher);
  EXPECT_EQ(Next(&launcher).exit, (ExitStatus{.signal = SIGSEGV}));
}

TEST_F(ProcessLauncherTest, EnvironmentAndFolder) {
  ProcessLauncher launcher = MakeLauncher();
  NodeCommand command = Shell("echo $MUSTER_NODE in $(pwd)");
  command.environment["MUSTER_NODE"] = "worker-9";
  command.working_directory = "/usr";
  ASSERT_THAT(launcher.Start(command), IsOk());
  Next(&launcher);
  Next(&launcher);
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string log, ReadFile(launcher.LogPath("node"), 10'000));
  EXPECT_THAT(log, HasSubstr("worker-9 in /usr\n"));
}

TEST_F(ProcessLauncherTest, CommandThatIsMissingOrNotExecutable) {
  ProcessLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start({.name = "a",
                              .command = {"/no/such/trainer"},
                              .environment = {},
                              .working_directory = ""}),
              IsOk());
  const ProcessReport missing = Next(&launcher);
  EXPECT_EQ(missing.kind, Kind::kExited);
  EXPECT_EQ(missing.exit.code, 127);
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string log, ReadFile(launcher.LogPath("a"), 10'000));
  EXPECT_THAT(log, HasSubstr("/no/such/trainer"));
  const std::string data = folder_.File("not-a-program");
  ASSERT_THAT(WriteFileAtomically(data, "1,2,3"), IsOk());
  ASSERT_THAT(
      launcher.Start({.name = "b", .command = {data}, .environment = {}, .working_directory = ""}),
      IsOk());
  EXPECT_EQ(Next(&launcher).exit.code, 126);
}

TEST_F(ProcessLauncherTest, StopReachesTheCommandBehindAShell) {
  ProcessLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("sleep 1000; true")), IsOk());
  Next(&launcher);
  launcher.Stop("node", seconds(60));
  EXPECT_EQ(Next(&launcher).exit, (ExitStatus{.signal = SIGTERM}));
}

TEST_F(ProcessLauncherTest, StopKillsWhatDoesNotEndInTime) {
  ProcessLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell(Family())), IsOk());
  Next(&launcher);
  const std::vector<Process> family = ReadPids(4, &launcher);
  launcher.Stop("node", milliseconds(10));
  EXPECT_EQ(Next(&launcher).exit, (ExitStatus{.signal = SIGKILL}));
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
}

TEST_F(ProcessLauncherTest, KillEndsAStoppedNode) {
  ProcessLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell("sleep 1000")), IsOk());
  const ProcessReport started = Next(&launcher);
  ASSERT_EQ(::kill(started.pid, SIGSTOP), 0);
  launcher.Kill("node");
  EXPECT_EQ(Next(&launcher).exit, (ExitStatus{.signal = SIGKILL}));
}

TEST_F(ProcessLauncherTest, ExitOfTheNodeTakesItsFamilyAlong) {
  ProcessLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell(Family())), IsOk());
  const ProcessReport started = Next(&launcher);
  const std::vector<Process> family = ReadPids(4, &launcher);
  ASSERT_EQ(::kill(started.pid, SIGKILL), 0);
  EXPECT_EQ(Next(&launcher).exit, (ExitStatus{.signal = SIGKILL}));
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
}

TEST_F(ProcessLauncherTest, DestructorLeavesNothing) {
  std::vector<Process> family;
  {
    ProcessLauncher launcher = MakeLauncher();
    ASSERT_THAT(launcher.Start(Shell(Family())), IsOk());
    Next(&launcher);
    family = ReadPids(4, &launcher);
  }
  for (const Process& process : family) EXPECT_TRUE(process.Ended());
  EXPECT_TRUE(Descendants({}).empty());
}

TEST_F(ProcessLauncherTest, DeathOfTheSupervisingProcessTakesTheFamilyAlong) {
  ProcessLauncher launcher = MakeLauncher();
  ASSERT_THAT(launcher.Start(Shell(Family())), IsOk());
  Next(&launcher);
  const std::vector<Process> family = ReadPids(4, &launcher);
  // The direct child is `supervise`.
  const std::vector<pid_t> descendants = Descendants({});
  ASSERT_FALSE(descendants.empty());
  for (pid_t pid : descendants) {
    MUSTER_ASSERT_OK_AND_ASSIGN(std::string command,
                                ReadFile(fmt::format("/proc/{}/cmdline", pid), 100'000));
    if (command.find("supervise") != std::string::npos) {
      ASSERT_EQ(::kill(pid, SIGKILL), 0);
    }
  }
  const ProcessReport report = Next(&launcher);
  EXPECT_EQ(report.kind, Kind::kExited);
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

}  // namespace
}  // namespace muster
