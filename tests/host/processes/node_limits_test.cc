#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <memory>

#include "base/file.h"
#include "host/processes/local_host.h"
#include "host/processes/log_reader.h"
#include "host/processes/spawn.h"
#include "host/processes/supervise.h"
#include "tests/host/processes/held_process.h"
#include "tests/host/processes/next_report.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Limits of real nodes, and a look into them.
namespace muster {
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

TEST(UsageOfTest, WhatTheGroupDoesNotCountIsTakenFromTheProcesses) {
  int asked = 0;
  const auto tree_cpu = [&asked] {
    ++asked;
    return std::chrono::microseconds(3'000'000);
  };
  CgroupUsage group;
  group.memory_bytes = 5;
  group.cpu = std::chrono::microseconds(7);
  EXPECT_EQ(UsageOf(group, tree_cpu).cpu, std::chrono::microseconds(7));
  EXPECT_EQ(asked, 0) << "it costs a look at every process";
  group.cpu.reset();
  const NodeUsage usage = UsageOf(group, tree_cpu);
  EXPECT_EQ(usage.cpu, std::chrono::microseconds(3'000'000));
  EXPECT_EQ(usage.memory_bytes, 5u);
}

/// Hosts, one after another, of a run of one node, which takes memory when it is told to.
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
    if (host_ != nullptr) host_->EndRun();
    ::close(life_[0]);
  }

  void Succeed(const std::string& run_id) {
    host_.reset();
    reports_.clear();
    absl::StatusOr<std::unique_ptr<LocalHost>> host =
        LocalHost::Open({.program = MUSTER_SUPERVISE_PROGRAM,
                         .log_directory = folder_.path(),
                         .life_fd = life_[0],
                         .socket_directory = folder_.File("nodes"),
                         .run_id = run_id,
                         .command_of = [this](const std::string&, NodeRole) { return command_; }});
    ASSERT_THAT(host.status(), IsOk());
    host_ = *std::move(host);
    EXPECT_THAT(host_->Find(), IsOk());
  }
  void Start(const Resources& limits, uint32_t start = 1, const std::string& verb = "fill") {
    // Most trainers are started by a script: what counts is below the command.
    command_.command = {"sh", "-c",        "\"$0\" $1 \"$2\" & wait $!", MUSTER_NODE_PROGRAM,
                        verb, orders_path_};
    ASSERT_THAT(host_->Start({.node = "node", .start = start, .limits = limits}), IsOk());
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
    pollfd reports = {host_->wake_fd(), POLLIN, 0};
    ::poll(&reports, 1, static_cast<int>(timeout.count()));
    for (HostReport& report : host_->TakeReports()) reports_.push_back(std::move(report));
  }
  /// The next report, which is one of this kind.
  template <typename Report>
  Report Next() {
    return testing::NextReport<Report>(&reports_, [this] { Take(milliseconds(500)); });
  }
  pid_t NextPid() { return static_cast<pid_t>(Next<NodeStarted>().pid); }
  std::string LogPath() const { return folder_.File("node.log"); }

  TempDir folder_;
  const std::string orders_path_ = folder_.File("orders");
  int life_[2];
  OwnedFd orders_;
  NodeCommand command_{.name = "node"};
  std::unique_ptr<LocalHost> host_;
  std::deque<HostReport> reports_;
};

/// Limits of the kernel; skipped with a message if this user cannot create control groups.
class KernelLimitsTest : public NodeLimitsTest {
 protected:
  void SetUp() override {
    Succeed();
    if (!host_->limits_remark().empty()) {
      GTEST_SKIP() << "control groups cannot be made here: " << host_->limits_remark();
    }
  }
  void Succeed() { NodeLimitsTest::Succeed("limits-" + std::to_string(::getpid())); }
};

TEST_F(KernelLimitsTest, AKillAtTheLimit) {
  Start({.memory_bytes = 64 * kMiB});
  const NodeStarted started = Next<NodeStarted>();
  Fill(256);
  const NodeExited report = Next<NodeExited>();
  EXPECT_EQ(report.pid, started.pid);
  EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
  EXPECT_EQ(report.memory_kill, MemoryKill::kKernel);
  EXPECT_EQ(report.memory_limit_bytes, 64 * kMiB);
  host_->Release("node");
  // The next life is not charged with it.
  Start({.memory_bytes = 512 * kMiB}, 2);
  Next<NodeStarted>();
  Fill(128);
  WaitFilled(1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage usage, host_->Usage("node"));
  EXPECT_GE(usage.memory_bytes, 128 * kMiB);
  EXPECT_EQ(usage.memory_limit_bytes, 512 * kMiB);
  EXPECT_GT(usage.cpu->count(), 0);
  host_->Kill("node");
  EXPECT_EQ(Next<NodeExited>().memory_kill, MemoryKill::kNone);
}

TEST_F(KernelLimitsTest, ACommandThatSurvivesAKillBelowItAndSucceedsWasNotKilled) {
  command_.command = {"sh", "-c", "\"$0\" fill \"$1\"; exit 0", MUSTER_NODE_PROGRAM, orders_path_};
  ASSERT_THAT(host_->Start({.node = "node", .start = 1, .limits = {.memory_bytes = 64 * kMiB}}),
              IsOk());
  Next<NodeStarted>();
  Fill(256);
  const NodeExited report = Next<NodeExited>();
  if (report.exit.signal != 0) GTEST_SKIP() << "the kernel kills the whole group";
  EXPECT_EQ(report.exit, ExitStatus());
  EXPECT_EQ(report.memory_kill, MemoryKill::kNone);
}

TEST_F(KernelLimitsTest, AKillWhileNoLauncherLived) {
  Start({.memory_bytes = 64 * kMiB});
  const HeldProcess node(NextPid());
  host_.reset();
  Fill(256);
  EXPECT_TRUE(node.Ended());
  Succeed();
  EXPECT_GT(NextPid(), 0);
  const NodeExited report = Next<NodeExited>();
  EXPECT_EQ(report.memory_kill, MemoryKill::kKernel);
  EXPECT_EQ(report.memory_limit_bytes, 64 * kMiB);
}

TEST_F(KernelLimitsTest, AKillWhoseWitnessesAllDied) {
  Start({.memory_bytes = 64 * kMiB});
  const HeldProcess node(NextPid());
  const HeldProcess supervisor(Supervisors().at(0));
  host_.reset();
  Fill(256);
  EXPECT_TRUE(node.Ended());
  ASSERT_EQ(::kill(supervisor.pid(), SIGKILL), 0);
  EXPECT_TRUE(supervisor.Ended());
  Succeed();
  EXPECT_FALSE(host_->Has("node"));
  EXPECT_EQ(host_->DeathOf("node", 1).memory_kill, MemoryKill::kKernel);
  EXPECT_EQ(host_->DeathOf("node", 2).memory_kill, MemoryKill::kNone);
}

TEST_F(KernelLimitsTest, AKillOfTheSupervisingProcessIsNotForMemory) {
  Start({.memory_bytes = 64 * kMiB});
  Next<NodeStarted>();
  ASSERT_EQ(::kill(Supervisors().at(0), SIGKILL), 0);
  const NodeExited report = Next<NodeExited>();
  EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
  EXPECT_EQ(report.memory_kill, MemoryKill::kNone);
}

TEST_F(KernelLimitsTest, AKillFromOutside) {
  Start({.memory_bytes = 64 * kMiB});
  const NodeStarted started = Next<NodeStarted>();
  Fill(16);
  WaitFilled(1);
  ASSERT_EQ(::kill(static_cast<pid_t>(started.pid), SIGKILL), 0);
  const NodeExited report = Next<NodeExited>();
  EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
  EXPECT_EQ(report.memory_kill, MemoryKill::kNone);
  EXPECT_GE(report.memory_peak_bytes, 16 * kMiB);
}

TEST_F(KernelLimitsTest, ARaiseInPlaceSavesANodeThatGrows) {
  Start({.cpus = 1, .memory_bytes = 64 * kMiB});
  Next<NodeStarted>();
  Fill(32);
  WaitFilled(1);
  // Set by a launcher that did not start it.
  Succeed();
  Next<NodeStarted>();
  EXPECT_THAT(host_->SetLimits("node", {.memory_bytes = 16 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("in use")));
  ASSERT_THAT(host_->SetLimits("node", {.cpus = 2, .memory_bytes = 512 * kMiB}), IsOk());
  Fill(128);
  WaitFilled(2);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage usage, host_->Usage("node"));
  EXPECT_EQ(usage.memory_limit_bytes, 512 * kMiB);
  EXPECT_GE(usage.memory_bytes, 160 * kMiB);
}

TEST_F(KernelLimitsTest, NodesThatDoNotRun) {
  EXPECT_THAT(host_->SetLimits("node", {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("node is not running")));
  EXPECT_THAT(host_->Usage("node"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("node is not running")));
  EXPECT_EQ(host_->DeathOf("node", 1).memory_kill, MemoryKill::kNone);
}

TEST_F(KernelLimitsTest, ANodeWhoseGroupCannotBeMadeRunsUnderTheWatch) {
  host_->EndRun();  // as another process might
  Start({.cpus = 1, .memory_bytes = 64 * kMiB});
  ASSERT_GT(NextPid(), 0);
  Fill(16);
  WaitFilled(1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage usage, host_->Usage("node"));
  EXPECT_EQ(usage.memory_limit_bytes, 64 * kMiB);
  EXPECT_THAT(host_->SetLimits("node", {.cpus = 1, .memory_bytes = 80 * kMiB}), IsOk());
  EXPECT_THAT(host_->SetLimits("node", {.cpus = 2, .memory_bytes = 80 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("control group")));
  Fill(128);
  EXPECT_EQ(Next<NodeExited>().memory_kill, MemoryKill::kOwn);
}

/// Limits of the supervising process, without control groups.
class WatchedLimitsTest : public NodeLimitsTest {
 protected:
  void SetUp() override { Succeed(""); }
  void ExpectOwnKill() {
    const NodeExited report = Next<NodeExited>();
    EXPECT_EQ(report.exit, (ExitStatus{.signal = SIGKILL}));
    EXPECT_EQ(report.memory_kill, MemoryKill::kOwn);
    EXPECT_EQ(report.memory_limit_bytes, 64 * kMiB);
    EXPECT_GT(report.memory_peak_bytes, 64 * kMiB);
  }
};

TEST_F(WatchedLimitsTest, AKillAboveTheLimit) {
  EXPECT_THAT(host_->limits_remark(), HasSubstr("CPU is not limited"));
  Start({.cpus = 1, .memory_bytes = 64 * kMiB});
  Next<NodeStarted>();
  Fill(16);
  WaitFilled(1);
  Fill(128);
  ExpectOwnKill();
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string log, ReadFile(LogPath(), kMiB));
  EXPECT_THAT(log, HasSubstr("... muster: node is killed: "));
  EXPECT_THAT(log, HasSubstr("more than its limit of 67108864"));
  EXPECT_THAT(host_->SetLimits("node", {}), StatusIs(absl::StatusCode::kNotFound, _));
}

TEST_F(WatchedLimitsTest, ANodeThatSaysNothingIsWatchedToo) {
  command_.command = {"sh", "-c", "\"$0\" fill \"$1\" > /dev/null", MUSTER_NODE_PROGRAM,
                      orders_path_};
  ASSERT_THAT(host_->Start({.node = "node", .start = 1, .limits = {.memory_bytes = 64 * kMiB}}),
              IsOk());
  Next<NodeStarted>();
  Fill(128);
  ExpectOwnKill();
}

TEST_F(WatchedLimitsTest, AKillWhileNoLauncherLived) {
  Start({.memory_bytes = 64 * kMiB});
  const HeldProcess node(NextPid());
  host_.reset();
  Fill(128);
  EXPECT_TRUE(node.Ended());
  Succeed("");
  EXPECT_GT(NextPid(), 0);
  ExpectOwnKill();
}

TEST_F(WatchedLimitsTest, AKillFromOutside) {
  Start({.memory_bytes = 64 * kMiB});
  ASSERT_EQ(::kill(NextPid(), SIGKILL), 0);
  EXPECT_EQ(Next<NodeExited>().memory_kill, MemoryKill::kNone);
}

TEST_F(WatchedLimitsTest, ARaiseInPlaceSavesANodeThatGrows) {
  Start({.memory_bytes = 64 * kMiB});
  Next<NodeStarted>();
  Fill(32);
  WaitFilled(1);
  Succeed("");
  Next<NodeStarted>();
  EXPECT_THAT(host_->SetLimits("node", {.memory_bytes = 16 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("in use")));
  ASSERT_THAT(host_->SetLimits("node", {.memory_bytes = 256 * kMiB}), IsOk());
  EXPECT_THAT(host_->SetLimits("node", {.cpus = 1, .memory_bytes = 512 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("CPU cannot be limited")));
  EXPECT_EQ(host_->Usage("node")->memory_limit_bytes, 256 * kMiB) << "nothing is changed";
  ASSERT_THAT(host_->SetLimits("node", {.memory_bytes = 512 * kMiB}), IsOk());
  Fill(300);
  WaitFilled(2);
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage usage, host_->Usage("node"));
  EXPECT_EQ(usage.memory_limit_bytes, 512 * kMiB);
  EXPECT_GE(usage.memory_bytes, 332 * kMiB);
  EXPECT_EQ(usage.memory_peak_bytes, usage.memory_bytes);
  EXPECT_GT(usage.cpu->count(), 0);
  // One that comes later is told.
  Succeed("");
  Next<NodeStarted>();
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeUsage again, host_->Usage("node"));
  EXPECT_EQ(again.memory_limit_bytes, 512 * kMiB);
}

TEST_F(WatchedLimitsTest, ALimitOnCpuThatStaysAsItIsDoesNotHinderOneOnMemory) {
  Start({.cpus = 1, .memory_bytes = 64 * kMiB});
  Next<NodeStarted>();
  EXPECT_THAT(host_->SetLimits("node", {.cpus = 1, .memory_bytes = 128 * kMiB}), IsOk());
  EXPECT_THAT(host_->SetLimits("node", {.cpus = 2, .memory_bytes = 256 * kMiB}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("CPU cannot be limited")));
  EXPECT_EQ(host_->Usage("node")->memory_limit_bytes, 128 * kMiB);
  // Nor for one that found the node, and repeats what it has.
  Succeed("");
  Next<NodeStarted>();
  EXPECT_THAT(host_->SetLimits("node", {.cpus = 1, .memory_bytes = 128 * kMiB}), IsOk());
  EXPECT_THAT(host_->SetLimits("node", {.cpus = 1, .memory_bytes = 256 * kMiB}), IsOk());
  EXPECT_EQ(host_->Usage("node")->memory_limit_bytes, 256 * kMiB);
}

TEST_F(WatchedLimitsTest, AStoppedProcessShowsItsStacks) {
  Start({}, 1, "deep");
  const NodeStarted started = Next<NodeStarted>();
  WaitFor("deep\n");
  ASSERT_EQ(::kill(-static_cast<pid_t>(started.pid), SIGSTOP), 0);
  ASSERT_THAT(host_->DumpStacks("node"), IsOk());
  EXPECT_THAT(WaitFor("... muster: end of the stacks\n"),
              HasSubstr(" NodeProgramDeepInside(int)+0x"));
}

TEST_F(WatchedLimitsTest, AStopDuringADumpOfStacksEndsBoth) {
  Start({}, 1, "stuck");
  Next<NodeStarted>();
  const pid_t supervisor = Supervisors().at(0);
  for (int i = 0; i < 2'000 && ProcessesBelow(supervisor).size() < 3; ++i) Take(milliseconds(10));
  for (int i = 0; i < 2; ++i) ASSERT_THAT(host_->DumpStacks("node"), IsOk());
  WaitFor("stacks of node were requested: 3 of its 3 processes");
  host_->Stop("node", std::chrono::hours(1));
  EXPECT_EQ(Next<NodeExited>().exit, (ExitStatus{.signal = SIGTERM}));
  const std::string log = WaitFor("were requested");
  EXPECT_EQ(log.find("were requested"), log.rfind("were requested")) << "one at a time";
  EXPECT_THAT(ProcessesBelow(supervisor), ::testing::IsEmpty()) << "the dump's process, too";
}

TEST_F(WatchedLimitsTest, SigquitShowsStacksToThoseWhoReachNoController) {
  Start({}, 1, "deep");
  Next<NodeStarted>();
  WaitFor("deep\n");
  ASSERT_EQ(::kill(testing::Supervisors().at(0), SIGQUIT), 0);
  EXPECT_THAT(WaitFor("... muster: end of the stacks\n"),
              HasSubstr(" NodeProgramDeepInside(int)+0x"));
  // It runs on.
  Fill(1);
  WaitFilled(1);
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

TEST_F(WatchedLimitsTest, ASlotIsMadeAnewAndReadAtTheExit) {
  command_.slot_file = folder_.File("slot");
  ASSERT_THAT(WriteFileAtomically(command_.slot_file, "what a predecessor left"), IsOk());
  Start({});
  Next<NodeStarted>();
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(command_.slot_file, 64 << 10));
  EXPECT_EQ(bytes, std::string(bytes.size(), '\0'));
  SlotFile slot{};
  BeginSlot(&slot, 9);
  EnterShard(&slot, LeaseToken::FromValue(77));
  ASSERT_THAT(
      WriteFileAtomically(command_.slot_file,
                          std::string_view(reinterpret_cast<const char*>(&slot), sizeof(slot))),
      IsOk());
  host_->Kill("node");
  const NodeExited exited = Next<NodeExited>();
  ASSERT_TRUE(exited.slot.has_value());
  EXPECT_EQ(exited.slot->Alone()->token, LeaseToken::FromValue(77));
}

TEST_F(WatchedLimitsTest, StacksGoIntoTheLog) {
  EXPECT_THAT(host_->DumpStacks("node"), StatusIs(absl::StatusCode::kNotFound, _));
  Start({}, 1, "deep");
  Next<NodeStarted>();
  WaitFor("deep\n");
  Succeed("");
  Next<NodeStarted>();
  ASSERT_THAT(host_->DumpStacks("node"), IsOk());
  const std::string log = WaitFor("... muster: end of the stacks\n");
  EXPECT_THAT(log, HasSubstr("... muster: stacks of node were requested: 2 of its 2 processes\n"));
  EXPECT_THAT(log, HasSubstr(" (deep-thread), "));
  EXPECT_THAT(log, HasSubstr(" NodeProgramDeepInside(int)+0x"));
  EXPECT_THAT(log, HasSubstr("(node_program), "));
  EXPECT_THAT(log, HasSubstr("... muster:   #0 "));
  EXPECT_EQ(LastWords(LogPath(), 10, 1000), "deep\n");
  // It runs on, and may be asked again.
  Fill(1);
  WaitFilled(1);
  ASSERT_THAT(host_->DumpStacks("node"), IsOk());
  WaitFor("... muster: end of the stacks\n", 2);
}

}  // namespace
}  // namespace muster
