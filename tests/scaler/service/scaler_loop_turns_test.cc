#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "scaler/service/plan_file.h"
#include "scaler/service/scaler_loop.h"
#include "tests/scaler/service/fake_host.h"
#include "tests/scaler/service/fake_master.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The loop without processes and without time of its own: every turn is a piece of a fake clock's,
/// and nodes live in memory.
namespace muster::scaler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kMebibyte = 1 << 20;
/// Only a loop that hangs takes so many.
constexpr int kTurnsMax = 20'000;

class ScalerLoopTurnsTest : public ::testing::Test {
 protected:
  using Steps = std::vector<std::function<bool()>>;

  ScalerLoopTurnsTest() {
    options_.run_id = "run-1";
    options_.directory = folder_.path();
    options_.history_directory = folder_.File("history");
    options_.keeper.restarts = {.crash_loop_exits = 3, .backoff_initial = milliseconds(1)};
    options_.keeper.finish_wait = milliseconds(1);
    plan_ = NewPlan("run-1", 1, 1);
  }

  /// Turns until every step was true once, each after the one before; then the job succeeds.
  KeeperOutcome Run(const Steps& steps) {
    auto link =
        std::make_unique<MasterLink>(master_.MakeClient(), "run-1", milliseconds(1), &clock_);
    const int answered_fd = link->wake_fd();
    size_t at = 0;
    int turns = 0;
    host_.on_turn = [&] {
      clock_.Advance(tick_);
      // The link asks again, for time has passed.
      pollfd answered = {answered_fd, POLLIN, 0};
      ASSERT_EQ(::poll(&answered, 1, 20'000), 1);
      while (at < steps.size() && steps[at]()) ++at;
      if (at == steps.size() || ++turns > kTurnsMax) master_.End(JobState::kSucceeded);
    };
    loop_.emplace(ScalerLoop::Parts{.options = &options_,
                                    .clock = &clock_,
                                    .host = &host_,
                                    .link = std::move(link),
                                    .adoption = Adopt(plan_, host_.found),
                                    .events = events_.get(),
                                    .board = &board_,
                                    .calls = &calls_,
                                    .notify = [] {}});
    const KeeperOutcome outcome = loop_->Run();
    EXPECT_EQ(at, steps.size()) << "steps that came true";
    loop_.reset();
    return outcome;
  }
  bool Runs(const std::string& node, uint32_t start) {
    const auto life = host_.nodes.find(node);
    return life != host_.nodes.end() && life->second.start == start &&
           !master_.Told(node, "started").empty() &&
           master_.Told(node, "started").back().start() == start;
  }
  static NodeExited Killed(const std::string& node) {
    return {.node = node, .exit = {.signal = SIGKILL}, .slot = {}, .last_words = ""};
  }
  /// Where it stands in what the host did.
  size_t At(const std::string& what) {
    EXPECT_EQ(host_.Count(what), 1u) << what;
    return static_cast<size_t>(std::find(host_.did.begin(), host_.did.end(), what) -
                               host_.did.begin());
  }
  Plan Written() { return ReadPlan(folder_.File("plan.json")).value(); }

  testing::FakeHost host_;
  muster::testing::TempDir folder_;
  muster::testing::FakeClock clock_;
  testing::FakeMaster master_;
  milliseconds tick_{100};
  std::unique_ptr<EventLog> events_ = EventLog::Open(folder_.path(), {}, &clock_).value();
  PictureBoard board_;
  CallQueue calls_;
  ScalerOptions options_;
  Plan plan_;
  std::optional<ScalerLoop> loop_;
};

TEST_F(ScalerLoopTurnsTest, FromTheFirstStartToTheLastExit) {
  host_.remark = "no limits here";
  host_.capacity = {.cpus = 8, .memory_bytes = 1024 * kMebibyte};
  const KeeperOutcome outcome = Run({[&] { return Runs("ps-0", 1) && Runs("worker-0", 1); },
                                     [&] { return board_.Look()->nodes.nodes.size() == 2; }});
  EXPECT_EQ(outcome.state, KeeperOutcome::State::kJobOver);
  EXPECT_THAT(host_.did, ElementsAre("start ps-0 1", "start worker-0 1", "stop worker-0",
                                     "stop ps-0", "release worker-0", "release ps-0", "end run"));
  EXPECT_EQ(master_.Told("ps-0", "exited").size(), 1u);
  EXPECT_EQ(board_.Look()->job.limits_remark, "no limits here");
}

TEST_F(ScalerLoopTurnsTest, ARunThatNobodyWouldContinueIsDrainedAndAnEventSaysWhy) {
  Run({[&] { return Runs("worker-0", 1); },
       [&] {
         EXPECT_EQ(master_.drains(), 0);
         host_.abandoned = "nobody is there";
         return true;
       },
       [&] { return master_.drains() > 1; }});
  std::vector<std::string> drains;
  for (const rest::Event& event : events_->Events(0, 100).events) {
    if (event.kind == "decision") drains.push_back(event.target + ": " + event.because);
  }
  EXPECT_THAT(drains, ElementsAre("job: nobody is there"));
}

TEST_F(ScalerLoopTurnsTest, AnEndOfTheMasterIsAnEventThatShowsInItsAnswers) {
  const auto started = [&](uint32_t start) {
    v1::ReportNodeRequest report;
    report.set_node("master");
    report.set_role("master");
    report.set_what("started");
    report.set_start(start);
    return master_.MakeClient()->ReportNode(report).ok();
  };
  Run({[&] { return started(1) && Runs("worker-0", 1); }, [&] { return started(2); },
       [&] {
         const std::vector<rest::Event> told = events_->Events(0, 100).events;
         return std::ranges::any_of(told, [](const rest::Event& event) {
           return event.kind == "exit" && event.target == "master";
         });
       }});
}

TEST_F(ScalerLoopTurnsTest, WhatAJoinedNodeMeasuresOfItselfIsItsUsage) {
  uint64_t cpu_us = 0;
  rest::Node seen;
  Run({[&] { return Runs("worker-0", 1); },
       [&] {
         cpu_us += 50'000;  // in a turn of 100 ms
         master_.Edit("worker-9", [&](NodeStatus* node) {
           node->host = "m2";
           node->pid = 17;
           node->state = NodeState::kRunning;
           node->own_usage = ProcessUsage{.cpu_us = cpu_us, .memory_bytes = 123};
         });
         for (const rest::Node& node : board_.Look()->nodes.nodes) {
           if (node.name == "worker-9") seen = node;
         }
         return seen.usage.has_value() && seen.usage->cpus > 0;
       }});
  EXPECT_EQ(seen.usage->memory_bytes, 123u);
  EXPECT_NEAR(seen.usage->cpus, 0.5, 0.1);
}

TEST_F(ScalerLoopTurnsTest, AWorkerWithoutAPlaceIsShownToldAndGivenUpForAWhile) {
  plan_ = NewPlan("run-1", 1, 2);
  options_.shape.workers_min = 1;
  options_.shape.workers_max = 3;
  options_.decider.policies.no_room.hold = seconds(5);
  host_.held["worker-1"] = {"worker-1", NodeWait::kUnschedulable, "0/3 nodes are available"};
  const auto shown = [&](const std::string& name) {
    const auto& nodes = board_.Look()->nodes.nodes;
    const auto node = std::ranges::find(nodes, name, &rest::Node::name);
    return node == nodes.end() ? rest::Node() : *node;
  };
  rest::Node waiting;
  Run({[&] { return Runs("worker-0", 1) && board_.Look() != nullptr; },
       [&] {
         waiting = shown("worker-1");
         return waiting.state == NodeState::kWaiting;
       },
       [&] { return host_.Count("stop worker-1") == 1; },
       [&] { return shown("worker-1").state == NodeState::kFinished; }});
  EXPECT_EQ(waiting.wait_reason, "0/3 nodes are available");
  ASSERT_EQ(master_.Told("worker-1", "held").size(), 1u);
  EXPECT_EQ(master_.Told("worker-1", "held")[0].cause(), "unschedulable");
  EXPECT_EQ(Written().workers, 1u);
  EXPECT_EQ(Written().nodes.at("worker-1").exits, 0u);
  const std::vector<rest::Event> told = events_->Events(0, 100).events;
  EXPECT_TRUE(std::ranges::any_of(told, [](const rest::Event& event) {
    return event.kind == "decision" && event.policy == "no-room" && event.action == "scale" &&
           event.because.find("0/3 nodes are available") != std::string::npos;
  }));
}

TEST_F(ScalerLoopTurnsTest, AnExitIsHeardByTheMasterThenReleasedThenFollowed) {
  size_t told_at_release = 0;
  Run({[&] { return Runs("worker-0", 1); },
       [&] {
         host_.Exit(Killed("worker-0"));
         return true;
       },
       [&] {
         if (host_.Count("release worker-0") == 0) return false;
         told_at_release = master_.Told("worker-0", "exited").size();
         return true;
       },
       [&] { return Runs("worker-0", 2); }});
  EXPECT_EQ(told_at_release, 1u);
  EXPECT_LT(std::find(host_.did.begin(), host_.did.end(), "release worker-0"),
            std::find(host_.did.begin(), host_.did.end(), "start worker-0 2"));
  EXPECT_EQ(Written().nodes.at("worker-0").starts, 2u);
}

TEST_F(ScalerLoopTurnsTest, MemoryThatTheHostSaysWasShortIsMoreAtTheNextStart) {
  host_.capacity = {.cpus = 8, .memory_bytes = 1024 * kMebibyte};
  plan_.nodes["worker-0"].limits.memory_bytes = 48 * kMebibyte;
  Run({[&] { return Runs("worker-0", 1); },
       [&] {
         NodeExited exit = Killed("worker-0");
         exit.memory_kill = MemoryKill::kKernel;
         exit.memory_peak_bytes = exit.memory_limit_bytes = 48 * kMebibyte;
         host_.Exit(std::move(exit));
         return true;
       },
       [&] {
         return Runs("worker-0", 2) &&
                host_.nodes.at("worker-0").limits.memory_bytes == 72 * kMebibyte;
       }});
  EXPECT_EQ(Written().nodes.at("worker-0").exits, 0u) << "no crash";
}

TEST_F(ScalerLoopTurnsTest, WhatTheHostIsTooShortForIsTriedAgainAndNobodysCrash) {
  host_.start_error = absl::ResourceExhaustedError("no space left for worker-0");
  Run({[&] { return host_.Count("start worker-0 5") == 1; },
       [&] {
         host_.start_error = absl::OkStatus();
         return true;
       },
       [&] { return Runs("ps-0", Written().nodes.at("ps-0").starts); }});
  const std::vector<v1::ReportNodeRequest> told = master_.Told("worker-0", "exited");
  ASSERT_GE(told.size(), 4u) << "more than make a crash loop";
  EXPECT_EQ(told[0].exit_code(), 126u);
  EXPECT_THAT(told[0].text(), HasSubstr("no space left for worker-0"));
  EXPECT_EQ(master_.status().state, JobState::kSucceeded);
}

TEST_F(ScalerLoopTurnsTest, LimitsThatTheHostRefusesAreTakenBack) {
  plan_.nodes["ps-0"].limits.memory_bytes = 64 * kMebibyte;
  options_.shape.roles[NodeRole::kServer].max.memory_bytes = 512 * kMebibyte;
  host_.limits_error = absl::FailedPreconditionError("ps-0 uses more");
  Run({[&] { return Runs("ps-0", 1); },
       [&] {
         return loop_->Take({ResizeNode{.node = "ps-0", .memory_bytes = 32 * kMebibyte}, ""}).ok();
       }});
  EXPECT_EQ(host_.Count("limit ps-0"), 1u);
  EXPECT_EQ(Written().nodes.at("ps-0").limits.memory_bytes, 64 * kMebibyte);
  const std::vector<rest::Event> events = events_->Events(0, 1'000).events;
  EXPECT_TRUE(std::ranges::any_of(events, [](const rest::Event& event) {
    return event.kind == "outcome" && event.because.find("ps-0 uses more") != std::string::npos;
  }));
}

TEST_F(ScalerLoopTurnsTest, ALostNodeShowsItsStacksBeforeItIsKilled) {
  tick_ = seconds(1);
  Run({[&] { return Runs("worker-0", 1); },
       [&] {
         master_.SetNode("worker-0", NodeState::kLost);
         return true;
       },
       [&] { return Runs("worker-0", 2); }});
  EXPECT_LT(At("dump worker-0"), At("kill worker-0"));
}

TEST_F(ScalerLoopTurnsTest, ADeathThatNobodySawIsToldUnderThePidOfThePlan) {
  plan_.nodes["worker-0"] = {.state = NodePlan::State::kRunning, .starts = 4, .pid = 4'000'000};
  Run({[&] { return Runs("worker-0", 5); }});
  const std::vector<v1::ReportNodeRequest> told = master_.Told("worker-0", "exited");
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0].pid(), 4'000'000u);
  EXPECT_EQ(told[0].start(), 4u);
  EXPECT_EQ(told[0].signal(), static_cast<uint32_t>(SIGKILL));
}

TEST_F(ScalerLoopTurnsTest, ASignalLeavesTheNodesAlone) {
  int signals[2];
  ASSERT_EQ(::pipe2(signals, O_CLOEXEC | O_NONBLOCK), 0);
  options_.signal_fd = signals[0];
  const signalfd_siginfo info{};
  const KeeperOutcome outcome =
      Run({[&] { return Runs("ps-0", 1) && Runs("worker-0", 1); },
           [&] {
             return ::write(signals[1], &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info));
           }});
  EXPECT_EQ(outcome.state, KeeperOutcome::State::kStopped);
  EXPECT_EQ(host_.Count("stop"), 0u);
  EXPECT_EQ(host_.Count("end run"), 0u);
  EXPECT_TRUE(Runs("ps-0", 1));
  EXPECT_TRUE(Runs("worker-0", 1)) << "the plan tells the next scaler that it runs";
  ::close(signals[0]);
  ::close(signals[1]);
}

TEST_F(ScalerLoopTurnsTest, WhoIsToldToEndTheRunEndsTheNodesWhateverSignalFollows) {
  int signals[2];
  ASSERT_EQ(::pipe2(signals, O_CLOEXEC | O_NONBLOCK), 0);
  options_.signal_fd = signals[0];
  const int end = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  options_.end_fd = end;
  const signalfd_siginfo info{};
  const uint64_t one = 1;
  const KeeperOutcome outcome =
      Run({[&] { return Runs("ps-0", 1) && Runs("worker-0", 1); },
           [&] {
             return ::write(end, &one, sizeof(one)) == static_cast<ssize_t>(sizeof(one)) &&
                    ::write(signals[1], &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info));
           }});
  EXPECT_EQ(outcome.state, KeeperOutcome::State::kStopped);
  EXPECT_EQ(host_.Count("stop worker-0"), 1u);
  EXPECT_EQ(host_.Count("release worker-0"), 1u);
  EXPECT_EQ(host_.Count("end run"), 0u) << "a successor continues with it";
  ::close(end);
  ::close(signals[0]);
  ::close(signals[1]);
}

}  // namespace
}  // namespace muster::scaler
