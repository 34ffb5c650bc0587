#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <optional>

#include "base/file.h"
#include "scaler/launcher/log_file.h"
#include "scaler/launcher/node_launcher.h"
#include "scaler/launcher/spawn.h"
#include "scaler/launcher/supervise.h"
#include "tests/scaler/launcher/held_process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Limits of real nodes, and a look into them.
namespace muster::scaler {
namespace {

using ::muster::testing::HeldProcess;
using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::Supervisors;
using ::muster::testing::TempDir;
using std::chrono::milliseconds;
using ::testing::_;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

/// Launchers, one after another, of a run of one node, which takes memory when it is told to.
class NodeLimitsTest : public ::testing::Test {
 protected:
  NodeLimitsTest() {
    EXPECT_EQ(::pipe2(life_, O_CLOEXEC), 0);
    EXPECT_EQ(::mkfifo(orders_path_.c_str(), 0600), 0);
    orders_ = OwnedFd(::open(orders_path_.c_str(), O_RDWR | O_CLOEXEC));
  }
  ~NodeLimitsTest() override {
    ::close(life_[1]);
    KillDescendants({});
    if (launcher_.has_value()) launcher_->RemoveGroups();
    ::close(life_[0]);
  }

  void Succeed(const std::string& run_id) {
    launcher_.reset();
    reports_.clear();
    absl::StatusOr<NodeLauncher> launcher =
        NodeLauncher::Open({.program = MUSTER_SUPERVISE_PROGRAM,
                            .log_directory = folder_.path(),
                            .socket_directory = folder_.File("nodes"),
                            .life_fd = life_[0],
                            .run_id = run_id});
    ASSERT_THAT(launcher.status(), IsOk());
    launcher_.emplace(*std::move(launcher));
    EXPECT_THAT(launcher_->Find(), IsOk());
  }
  void Start(const Resources& limits, uint32_t start = 1, const std::string& verb = "fill") {
    // Most trainers are started by a script: what counts is below the command.
    const std::vector<std::string> command = {
        "sh", "-c", "\"$0\" $1 \"$2\" & wait $!", MUSTER_NODE_PROGRAM, verb, orders_path_};
    ASSERT_THAT(
        launcher_->Start({.name = "node", .command = command, .environment = {}}, start, limits),
        IsOk());
  }
  void Fill(uint32_t mebibytes) {
    const std::string order = std::to_string(mebibytes) + "\n";
    ASSERT_EQ(::write(orders_.get(), order.data(), order.size()),
              static_cast<ssize_t>(order.size()));
  }
  /// It said so that many times.
  void WaitFilled(size_t times) { WaitFor("filled\n", times); }
  /// Returns the log, in which `text` is so many times.
  std::string WaitFor(const std::string& text, size_t times = 1) {
    std::string log;
    for (int i = 0; i < 2000; ++i) {
      log = ReadFile(folder_.File("node.log"), kMiB).value_or("");
      size_t found = 0;
      for (size_t at = 0; (at = log.find(text, at)) != std::string::npos; ++at) ++found;
      if (found >= times) return log;
      Take(milliseconds(10));
    }
    ADD_FAILURE() << text << " does not come: " << log;
    return log;
  }
  void Take(milliseconds timeout) {
    for (ProcessReport& report : launcher_->Wait(timeout, {})) reports_.push_back(report);
  }
  ProcessReport Next() {
    for (int i = 0; i < 100 && reports_.empty(); ++i) Take(milliseconds(500));
    if (reports_.empty()) {
      ADD_FAILURE() << "no report came";
      return {};
    }
    ProcessReport report = std::move(reports_.front());
    reports_.pop_front();
    return report;
  }

  TempDir folder_;
  const std::string orders_path_ = folder_.File("orders");
  int life_[2];
  OwnedFd orders_;
  std::optional<NodeLauncher> launcher_;
  std::deque<ProcessReport> reports_;
};

/// Of the kernel; skipped, and said, where control groups are not ours to make.
class KernelLimitsTest : public NodeLimitsTest {
 protected:
  void SetUp() override {
    Succeed();
    if (!launcher_->limits_remark().empty()) {
      GTEST_SKIP() << "control groups cannot be made here: " << launcher_->limits_remark();
    }
  }
  void Succeed() { NodeLimitsTest::Succeed("limits-" + std::to_string(::getpid())); }
};

TEST_F(KernelLimitsTest, AKillAtTheLimit) {
  Start({.memory_bytes = 64 * kMiB});
  const ProcessReport started = Next();
  Fill(256);
  const ProcessReport report = Next();
  EXPECT_EQ(report.pid, started.pid);
  EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
  EXPECT_EQ(report.memory_kill, MemoryKill::kKernel);
  EXPECT_EQ(report.memory_limit_bytes, 64 * kMiB);
  launcher_->Release("node");
  // The next life is not charged with it.
  Start({.memory_bytes = 512 * kMiB}, 2);
  Next();
  Fill(128);
  WaitFilled(1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage usage, launcher_->ReadUsage("node"));
  EXPECT_TRUE(usage.kernel_limits);
  EXPECT_GE(usage.memory_bytes, 128 * kMiB);
  EXPECT_EQ(usage.memory_limit_bytes, 512 * kMiB);
  EXPECT_GT(usage.cpu.count(), 0);
  launcher_->Kill("node");
  EXPECT_EQ(Next().memory_kill, MemoryKill::kNone);
}

TEST_F(KernelLimitsTest, AKillWhileNoLauncherLived) {
  Start({.memory_bytes = 64 * kMiB});
  const HeldProcess node(Next().pid);
  launcher_.reset();
  Fill(256);
  EXPECT_TRUE(node.Ended());
  Succeed();
  EXPECT_GT(Next().pid, 0);
  const ProcessReport report = Next();
  EXPECT_EQ(report.memory_kill, MemoryKill::kKernel);
  EXPECT_EQ(report.memory_limit_bytes, 64 * kMiB);
}

TEST_F(KernelLimitsTest, AKillWhoseWitnessesAllDied) {
  Start({.memory_bytes = 64 * kMiB});
  const HeldProcess node(Next().pid);
  const HeldProcess supervisor(Supervisors().at(0));
  launcher_.reset();
  Fill(256);
  EXPECT_TRUE(node.Ended());
  ASSERT_EQ(::kill(supervisor.pid(), SIGKILL), 0);
  EXPECT_TRUE(supervisor.Ended());
  Succeed();
  EXPECT_FALSE(launcher_->attached("node"));
  EXPECT_EQ(launcher_->DeathReport("node", 1).memory_kill, MemoryKill::kKernel);
  EXPECT_EQ(launcher_->DeathReport("node", 2).memory_kill, MemoryKill::kNone);
}

TEST_F(KernelLimitsTest, AKillOfTheSupervisingProcessIsNotForMemory) {
  Start({.memory_bytes = 64 * kMiB});
  Next();
  ASSERT_EQ(::kill(Supervisors().at(0), SIGKILL), 0);
  const ProcessReport report = Next();
  EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
  EXPECT_EQ(report.memory_kill, MemoryKill::kNone);
}

TEST_F(KernelLimitsTest, AKillFromOutside) {
  Start({.memory_bytes = 64 * kMiB});
  const ProcessReport started = Next();
  Fill(16);
  WaitFilled(1);
  ASSERT_EQ(::kill(started.pid, SIGKILL), 0);
  const ProcessReport report = Next();
  EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
  EXPECT_EQ(report.memory_kill, MemoryKill::kNone);
  EXPECT_GE(report.memory_peak_bytes, 16 * kMiB);
}

TEST_F(KernelLimitsTest, ARaiseInPlaceSavesANodeThatGrows) {
  Start({.cpus = 1, .memory_bytes = 64 * kMiB});
  Next();
  Fill(32);
  WaitFilled(1);
  // By a launcher that did not start it.
  Succeed();
  Next();
  EXPECT_THAT(launcher_->SetLimits("node", {.memory_bytes = 16 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("in use")));
  ASSERT_THAT(launcher_->SetLimits("node", {.cpus = 2, .memory_bytes = 512 * kMiB}), IsOk());
  Fill(128);
  WaitFilled(2);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage usage, launcher_->ReadUsage("node"));
  EXPECT_EQ(usage.memory_limit_bytes, 512 * kMiB);
  EXPECT_GE(usage.memory_bytes, 160 * kMiB);
}

TEST_F(KernelLimitsTest, NodesThatDoNotRun) {
  EXPECT_THAT(launcher_->SetLimits("node", {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("node does not run")));
  EXPECT_THAT(launcher_->ReadUsage("node"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("node does not run")));
  EXPECT_EQ(launcher_->DeathReport("node", 1).memory_kill, MemoryKill::kNone);
}

TEST_F(KernelLimitsTest, ANodeWhoseGroupCannotBeMadeRunsUnderTheWatch) {
  launcher_->RemoveGroups();  // as somebody else might
  Start({.cpus = 1, .memory_bytes = 64 * kMiB});
  ASSERT_GT(Next().pid, 0);
  Fill(16);
  WaitFilled(1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage usage, launcher_->ReadUsage("node"));
  EXPECT_FALSE(usage.kernel_limits);
  EXPECT_EQ(usage.memory_limit_bytes, 64 * kMiB);
  EXPECT_THAT(launcher_->SetLimits("node", {.cpus = 1, .memory_bytes = 80 * kMiB}), IsOk());
  EXPECT_THAT(launcher_->SetLimits("node", {.cpus = 2, .memory_bytes = 80 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("control group")));
  Fill(128);
  EXPECT_EQ(Next().memory_kill, MemoryKill::kOwn);
}

/// Of the supervising process, where there are no control groups.
class WatchedLimitsTest : public NodeLimitsTest {
 protected:
  void SetUp() override { Succeed(""); }
  void ExpectOwnKill() {
    const ProcessReport report = Next();
    EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
    EXPECT_EQ(report.memory_kill, MemoryKill::kOwn);
    EXPECT_EQ(report.memory_limit_bytes, 64 * kMiB);
    EXPECT_GT(report.memory_peak_bytes, 64 * kMiB);
  }
};

TEST_F(WatchedLimitsTest, AKillAboveTheLimit) {
  EXPECT_THAT(launcher_->limits_remark(), HasSubstr("CPU is not limited"));
  Start({.cpus = 1, .memory_bytes = 64 * kMiB});
  Next();
  Fill(16);
  WaitFilled(1);
  Fill(128);
  ExpectOwnKill();
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string log, ReadFile(launcher_->LogPath("node"), kMiB));
  EXPECT_THAT(log, HasSubstr("... muster: node is killed: "));
  EXPECT_THAT(log, HasSubstr("more than its limit of 67108864"));
  EXPECT_THAT(launcher_->SetLimits("node", {}), StatusIs(absl::StatusCode::kNotFound, _));
}

TEST_F(WatchedLimitsTest, AKillWhileNoLauncherLived) {
  Start({.memory_bytes = 64 * kMiB});
  const HeldProcess node(Next().pid);
  launcher_.reset();
  Fill(128);
  EXPECT_TRUE(node.Ended());
  Succeed("");
  EXPECT_GT(Next().pid, 0);
  ExpectOwnKill();
}

TEST_F(WatchedLimitsTest, AKillFromOutside) {
  Start({.memory_bytes = 64 * kMiB});
  ASSERT_EQ(::kill(Next().pid, SIGKILL), 0);
  EXPECT_EQ(Next().memory_kill, MemoryKill::kNone);
}

TEST_F(WatchedLimitsTest, ARaiseInPlaceSavesANodeThatGrows) {
  Start({.memory_bytes = 64 * kMiB});
  Next();
  Fill(32);
  WaitFilled(1);
  Succeed("");
  Next();
  EXPECT_THAT(launcher_->SetLimits("node", {.memory_bytes = 16 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("in use")));
  ASSERT_THAT(launcher_->SetLimits("node", {.memory_bytes = 256 * kMiB}), IsOk());
  EXPECT_THAT(launcher_->SetLimits("node", {.cpus = 1, .memory_bytes = 512 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("CPU cannot be limited")));
  EXPECT_EQ(launcher_->ReadUsage("node")->memory_limit_bytes, 256 * kMiB) << "nothing is changed";
  ASSERT_THAT(launcher_->SetLimits("node", {.memory_bytes = 512 * kMiB}), IsOk());
  Fill(300);
  WaitFilled(2);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage usage, launcher_->ReadUsage("node"));
  EXPECT_FALSE(usage.kernel_limits);
  EXPECT_EQ(usage.memory_limit_bytes, 512 * kMiB);
  EXPECT_GE(usage.memory_bytes, 332 * kMiB);
  EXPECT_EQ(usage.memory_peak_bytes, usage.memory_bytes);
  EXPECT_GT(usage.cpu.count(), 0);
  // One that comes later is told.
  Succeed("");
  Next();
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage again, launcher_->ReadUsage("node"));
  EXPECT_EQ(again.memory_limit_bytes, 512 * kMiB);
}

TEST_F(WatchedLimitsTest, ALimitOnCpuThatStaysAsItIsDoesNotHinderOneOnMemory) {
  Start({.cpus = 1, .memory_bytes = 64 * kMiB});
  Next();
  EXPECT_THAT(launcher_->SetLimits("node", {.cpus = 1, .memory_bytes = 128 * kMiB}), IsOk());
  EXPECT_THAT(launcher_->SetLimits("node", {.cpus = 2, .memory_bytes = 256 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("CPU cannot be limited")));
  EXPECT_EQ(launcher_->ReadUsage("node")->memory_limit_bytes, 128 * kMiB);
  // Nor for one that found the node, and repeats what it has.
  Succeed("");
  Next();
  EXPECT_THAT(launcher_->SetLimits("node", {.cpus = 1, .memory_bytes = 128 * kMiB}), IsOk());
  EXPECT_THAT(launcher_->SetLimits("node", {.cpus = 1, .memory_bytes = 256 * kMiB}), IsOk());
  EXPECT_EQ(launcher_->ReadUsage("node")->memory_limit_bytes, 256 * kMiB);
}

TEST_F(WatchedLimitsTest, AStoppedProcessShowsItsStacks) {
  Start({}, 1, "deep");
  const ProcessReport started = Next();
  WaitFor("deep\n");
  ASSERT_EQ(::kill(-started.pid, SIGSTOP), 0);
  ASSERT_THAT(launcher_->DumpStacks("node"), IsOk());
  EXPECT_THAT(WaitFor("... muster: end of the stacks\n"),
              HasSubstr(" NodeProgramDeepInside(int)+0x"));
}

TEST_F(WatchedLimitsTest, ACommandThatCannotEnterItsGroupRunsUnderTheWatch) {
  const OwnedFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const SuperviseOptions options{.name = "node",
                                 .cgroup_fds = {full.get()},
                                 .memory_limit_bytes = 64 * kMiB,
                                 .log_path = folder_.File("node.log"),
                                 .command = {MUSTER_NODE_PROGRAM, "fill", orders_path_}};
  std::vector<std::string> arguments = SuperviseArguments(options);
  arguments.insert(arguments.begin(), {MUSTER_SUPERVISE_PROGRAM, "supervise"});
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const pid_t pid,
      Spawn(MUSTER_SUPERVISE_PROGRAM, arguments, SupervisorEnvironment({}), options.cgroup_fds));
  Fill(16);
  EXPECT_THAT(WaitFor("filled\n"), HasSubstr("... muster: cannot enter the control group: "));
  Fill(128);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGKILL);
  EXPECT_THAT(WaitFor("node is killed"), HasSubstr("more than its limit of 67108864"));
}

TEST_F(WatchedLimitsTest, StacksGoIntoTheLog) {
  EXPECT_THAT(launcher_->DumpStacks("node"), StatusIs(absl::StatusCode::kNotFound, _));
  Start({}, 1, "deep");
  Next();
  WaitFor("deep\n");
  Succeed("");
  Next();
  ASSERT_THAT(launcher_->DumpStacks("node"), IsOk());
  const std::string log = WaitFor("... muster: end of the stacks\n");
  EXPECT_THAT(log, HasSubstr("... muster: stacks of node are asked for: 2 of its 2 processes\n"));
  EXPECT_THAT(log, HasSubstr(" (deep-thread), "));
  EXPECT_THAT(log, HasSubstr(" NodeProgramDeepInside(int)+0x"));
  EXPECT_THAT(log, HasSubstr("(node_program), "));
  EXPECT_THAT(log, HasSubstr("... muster:   #0 "));
  EXPECT_EQ(LastWords(launcher_->LogPath("node"), 10, 1000), "deep\n");
  // It runs on, and may be asked again.
  Fill(1);
  WaitFilled(1);
  ASSERT_THAT(launcher_->DumpStacks("node"), IsOk());
  WaitFor("... muster: end of the stacks\n", 2);
}

}  // namespace
}  // namespace muster::scaler
