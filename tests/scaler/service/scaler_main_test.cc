#include "scaler/service/scaler_main.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "host/processes/process_tree.h"
#include "scaler/service/plan_file.h"
#include "tests/scaler/service/scaler_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster::scaler {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using ScalerMainTest = testing::ScalerFixture;

TEST_F(ScalerMainTest, StartsNodesAndEndsThemWithTheJob) {
  const absl::StatusOr<KeeperOutcome> outcome =
      RunUntil([&] { return Log("worker-0").find("start 1") != std::string::npos; });
  ASSERT_THAT(outcome.status(), IsOk());
  EXPECT_EQ(outcome->state, KeeperOutcome::State::kJobOver);
  EXPECT_EQ(ExitOf("ps-0"), "SIGTERM") << "the master has heard of every exit";
  EXPECT_EQ(ExitOf("worker-0"), "SIGTERM");
  // Released supervising processes take a moment.
  for (int i = 0; i < 2'000 && !Descendants({}).empty(); ++i) ::poll(nullptr, 0, 10);
  EXPECT_TRUE(Descendants({}).empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.File("nodes")));
  uint64_t beats = 0;
  EXPECT_EQ(::read(beat_fd_, &beats, sizeof(beats)), static_cast<ssize_t>(sizeof(beats)));
}

TEST_F(ScalerMainTest, RestartsAndRemembersIt) {
  worker_ = "if [ $MUSTER_START = 1 ]; then kill -KILL $$; fi; exec sleep 1000";
  const absl::StatusOr<KeeperOutcome> outcome = RunUntil([&] {
    const absl::StatusOr<Plan> plan = ReadPlan(folder_.File("scaler/plan.json"));
    return plan.ok() && plan->nodes.at("worker-0").starts == 2 &&
           Log("worker-0").find("start 2") != std::string::npos;
  });
  ASSERT_THAT(outcome.status(), IsOk());
  const JobStatus job = Status();
  for (const NodeStatus& node : job.nodes) {
    EXPECT_EQ(node.restarts, node.name == "worker-0" ? 1u : 0u) << node.name;
  }
}

TEST_F(ScalerMainTest, CrashLoopEndsTheJobAsFailed) {
  worker_ = "echo no model; exit 3";
  MUSTER_ASSERT_OK_AND_ASSIGN(const KeeperOutcome outcome, RunScaler(options_, &clock_));
  EXPECT_EQ(outcome.state, KeeperOutcome::State::kJobOver);
  EXPECT_EQ(Status().state, JobState::kFailed);
  EXPECT_THAT(Status().reason,
              ::testing::AllOf(HasSubstr("worker-0 ended 3 times"), HasSubstr("no model")));
}

TEST_F(ScalerMainTest, PlanOfAnotherRunIsForgotten) {
  Plan plan = NewPlan("run-0", 1, 1);
  plan.nodes["worker-0"] = {.state = NodePlan::State::kFinished, .starts = 7};
  ASSERT_THAT(MakeDirectories(options_.directory), IsOk());
  ASSERT_THAT(WritePlan(options_.directory + "/plan.json", plan), IsOk());
  const absl::StatusOr<KeeperOutcome> outcome =
      RunUntil([&] { return Log("worker-0").find("start 1") != std::string::npos; });
  EXPECT_THAT(outcome.status(), IsOk());
}

TEST_F(ScalerMainTest, KilledWhileNobodyLookedIsReportedAndStartedOnce) {
  Plan plan = NewPlan(run_id_, 1, 1);
  plan.nodes["worker-0"] = {.state = NodePlan::State::kRunning, .starts = 4, .pid = 4'000'000};
  ASSERT_THAT(MakeDirectories(options_.directory), IsOk());
  ASSERT_THAT(WritePlan(options_.directory + "/plan.json", plan), IsOk());
  const absl::StatusOr<KeeperOutcome> outcome =
      RunUntil([&] { return Log("worker-0").find("start 5") != std::string::npos; });
  EXPECT_THAT(outcome.status(), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const MasterEvents events,
                              client_->ListEvents(v1::ListEventsRequest()));
  std::vector<std::string> exits;
  for (const MasterEvent& event : events.events) {
    if (event.kind == "node-exited" && event.node == "worker-0") exits.push_back(event.text);
  }
  ASSERT_EQ(exits.size(), 2u);
  EXPECT_THAT(exits[0], HasSubstr("pid 4000000: SIGKILL"));
}

TEST_F(ScalerMainTest, WhatRunsIsFoundWithoutThePlan) {
  {
    // A former scaler: it has added a worker, and is killed.
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<LocalHost> host, OpenHost(""));
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::vector<FoundNode> found, host->Find());
    ASSERT_TRUE(found.empty());
    ASSERT_THAT(host->Start({.node = "worker-1", .role = NodeRole::kWorker, .start = 3}), IsOk());
    for (int i = 0; i < 2'000 && host->TakeReports().empty(); ++i) ::poll(nullptr, 0, 10);
  }
  ASSERT_THAT(MakeDirectories(options_.directory), IsOk());
  ASSERT_THAT(WriteFileAtomically(options_.directory + "/plan.json", "{\"run_id\": "), IsOk());
  const absl::StatusOr<KeeperOutcome> outcome = RunUntil([&] {
    const JobStatus job = Status();
    return std::any_of(job.nodes.begin(), job.nodes.end(), [](const NodeStatus& node) {
      return node.name == "worker-1" && node.pid != 0;
    });
  });
  ASSERT_THAT(outcome.status(), IsOk());
  EXPECT_THAT(Log("worker-1"), Not(HasSubstr("start 4")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Plan plan, ReadPlan(options_.directory + "/plan.json"));
  EXPECT_EQ(plan.nodes.at("worker-1").starts, 3u);
  EXPECT_EQ(plan.workers, 2u);
}

TEST_F(ScalerMainTest, ASecondScalerIsRefused) {
  ASSERT_THAT(MakeDirectories(options_.directory), IsOk());
  const std::string path = options_.directory + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_THAT(RunScaler(options_, &clock_),
              StatusIs(absl::StatusCode::kUnavailable,
                       ::testing::AllOf(HasSubstr(path), HasSubstr("another scaler"))));
  ::close(fd);
}

TEST_F(ScalerMainTest, AScalerThatLeavesLeavesTheNodesToTheNext) {
  int signals[2];
  ASSERT_EQ(::pipe2(signals, O_CLOEXEC | O_NONBLOCK), 0);
  options_.signal_fd = signals[0];
  std::thread leaver([&] {
    const auto up = [&] { return Log("worker-0").find("start 1") != std::string::npos; };
    for (int i = 0; i < 2'000 && !up(); ++i) ::poll(nullptr, 0, 10);
    signalfd_siginfo info{};
    info.ssi_signo = SIGTERM;
    EXPECT_EQ(::write(signals[1], &info, sizeof(info)), static_cast<ssize_t>(sizeof(info)));
  });
  MUSTER_ASSERT_OK_AND_ASSIGN(const KeeperOutcome left, RunScaler(options_, &clock_));
  leaver.join();
  EXPECT_EQ(left.state, KeeperOutcome::State::kStopped);
  EXPECT_EQ(ExitOf("worker-0"), "none");
  const absl::StatusOr<KeeperOutcome> outcome = RunUntil([&] {
    const JobStatus job = Status();
    return std::any_of(job.nodes.begin(), job.nodes.end(), [](const NodeStatus& node) {
      return node.name == "worker-0" && node.state != NodeState::kExited;
    });
  });
  ASSERT_THAT(outcome.status(), IsOk());
  EXPECT_THAT(Log("worker-0"), Not(HasSubstr("start 2")));
  EXPECT_THAT(Log("ps-0"), Not(HasSubstr("start 2")));
  for (const int fd : signals) ::close(fd);
}

TEST_F(ScalerMainTest, TheLockOfALostMachineIsPassedOver) {
  ASSERT_THAT(MakeDirectories(options_.directory), IsOk());
  const std::string path = options_.directory + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  options_.passes_lost_locks = true;
  const absl::StatusOr<KeeperOutcome> outcome =
      RunUntil([&] { return Log("worker-0").find("start 1") != std::string::npos; });
  EXPECT_THAT(outcome.status(), IsOk());
  ::close(fd);
}

}  // namespace
}  // namespace muster::scaler
