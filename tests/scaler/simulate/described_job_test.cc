#include "scaler/simulate/described_job.h"

#include <gmock/gmock.h>

#include <utility>

#include "scaler/model/sample_span.h"

namespace muster::scaler {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class DescribedJobTest : public ::testing::Test {
 protected:
  void Begin() {
    EXPECT_TRUE(CheckDescribed(spec_).ok()) << CheckDescribed(spec_);
    job_.emplace(spec_);
  }
  /// The nodes that ended meanwhile.
  std::vector<NodeEnd> Seconds(int count) {
    std::vector<NodeEnd> ends;
    for (int i = 0; i < count; ++i) {
      job_->Tick();
      ends.insert(ends.end(), job_->view().ends.begin(), job_->view().ends.end());
    }
    return ends;
  }
  const NodeView& Node(const std::string& name) {
    const NodeView* node = FindNode(job_->view(), name);
    EXPECT_NE(node, nullptr) << name;
    return *node;
  }
  Span Newest(const std::string& name) {
    const std::optional<Span> span =
        SpanSince(Node(name), job_->view().now - seconds(5), seconds(1));
    EXPECT_TRUE(span.has_value());
    return span.value_or(Span{});
  }
  /// Microseconds.
  double ComputingOf(const std::string& name) {
    const Span span = Newest(name);
    const WorkerTotals &from = span.begin->worker, &to = span.end->worker;
    return static_cast<double>((to.computing - from.computing).count()) /
           static_cast<double>(to.minibatches - from.minibatches);
  }
  double ServingOf(const std::string& name) {
    const Span span = Newest(name);
    return span.Rate(span.end->server.serving - span.begin->server.serving);
  }
  double RateOf(const std::string& name) {
    const Span span = Newest(name);
    return static_cast<double>(span.end->worker.records - span.begin->worker.records) /
           span.seconds();
  }
  void Happens(int at, const std::string& node, decltype(Happening::what) what,
               bool stays = false) {
    spec_.happenings.push_back({.at = seconds(at), .node = node, .what = what, .stays = stays});
  }

  DescribedSpec spec_;
  std::optional<DescribedJob> job_;
};

TEST_F(DescribedJobTest, StartsAndTrains) {
  Begin();
  Seconds(1);
  EXPECT_EQ(job_->view().activity, Activity::kStarting);
  Seconds(30);
  EXPECT_EQ(job_->view().activity, Activity::kTraining);
  EXPECT_THAT(job_->view().nodes, SizeIs(3));
  EXPECT_NEAR(ComputingOf("worker-0"), 10'000, 200);
  EXPECT_NEAR(Newest("worker-0").cpus(), 0.8, 0.05);
  EXPECT_NEAR(RateOf("worker-0"), RateOf("worker-1"), 64);
  EXPECT_GT(job_->view().records_trained, 100'000u);
}

TEST_F(DescribedJobTest, EndsWithItsRecordsOrItsTime) {
  spec_.records = 50'000;
  Begin();
  Seconds(60);
  EXPECT_TRUE(job_->over());
  spec_ = {};
  spec_.duration = seconds(20);
  DescribedJob job(spec_);
  for (int i = 0; i < 19; ++i) job.Tick();
  EXPECT_FALSE(job.over());
  job.Tick();
  EXPECT_TRUE(job.over());
}

TEST_F(DescribedJobTest, AServerKeepsItsMemoryAndDiesAtItsLimit) {
  spec_.server.memory_start = 100 * kMiB;
  spec_.server.memory_growth_per_minute = 60 * kMiB;
  spec_.server.limits.memory_bytes = 130 * kMiB;
  Begin();
  std::vector<NodeEnd> ends;
  while (ends.empty() && !job_->over()) ends = Seconds(1);
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(ends[0].cause, EndCause::kKernelOutOfMemory);
  EXPECT_EQ(ends[0].memory_limit_bytes, 130 * kMiB);
  EXPECT_TRUE(ends[0].progressed);
  EXPECT_EQ(job_->kills_for_memory(), 1u);
  job_->CarryOut(RestartNode{.node = "ps-0", .limits = Resources{.memory_bytes = 500 * kMiB}});
  Seconds(20);
  EXPECT_EQ(Node("ps-0").start, 2u);
  EXPECT_GT(Node("ps-0").samples.back().memory_bytes, 130 * kMiB);
}

TEST_F(DescribedJobTest, AWorkersMemoryBeginsAnewAndMayLevelOff) {
  spec_.worker.memory_growth_per_minute = 60 * kMiB;
  spec_.worker.memory_most = 120 * kMiB;
  Happens(40, "worker-1", Happening::Killed{});
  Begin();
  Seconds(39);
  EXPECT_EQ(Node("worker-1").samples.back().memory_bytes, 120 * kMiB);
  EXPECT_EQ(Seconds(1).at(0).cause, EndCause::kPlatform);
  Seconds(5);
  EXPECT_LT(Node("worker-1").samples.back().memory_bytes, 110 * kMiB);
}

TEST_F(DescribedJobTest, GrowthThatBeginsOnTheWay) {
  Happens(20, "worker-0", Happening::Grows{60 * kMiB});
  Happens(20, "worker-1", Happening::Grows{60 * kMiB}, true);
  Begin();
  Seconds(39);
  EXPECT_EQ(Node("worker-0").samples.back().memory_bytes, 120 * kMiB);
  job_->CarryOut(RestartNode{.node = "worker-0"});
  job_->CarryOut(RestartNode{.node = "worker-1"});
  Seconds(20);
  EXPECT_EQ(Node("worker-0").samples.back().memory_bytes, 100 * kMiB);
  EXPECT_GT(Node("worker-1").samples.back().memory_bytes, 110 * kMiB);
}

TEST_F(DescribedJobTest, SlowUntilItIsStartedAgainUnlessItStays) {
  Happens(10, "worker-0", Happening::Slow{5});
  Happens(10, "worker-1", Happening::Slow{5}, true);
  Begin();
  Seconds(30);
  EXPECT_NEAR(ComputingOf("worker-0"), 50'000, 1'500);
  EXPECT_LT(Newest("worker-0").throttled(), 0.01);
  job_->CarryOut(RestartNode{.node = "worker-0"});
  job_->CarryOut(RestartNode{.node = "worker-1"});
  EXPECT_EQ(Seconds(1).at(0).cause, EndCause::kAsked);
  Seconds(20);
  EXPECT_NEAR(ComputingOf("worker-0"), 10'000, 200);
  EXPECT_NEAR(ComputingOf("worker-1"), 50'000, 1'500);
}

TEST_F(DescribedJobTest, AQuotaThrottlesUntilOursIsWrittenAgain) {
  Happens(10, "worker-0", Happening::Quota{0.2});
  Begin();
  Seconds(30);
  EXPECT_NEAR(ComputingOf("worker-0"), 40'000, 1'500);
  EXPECT_NEAR(Newest("worker-0").cpus(), 0.2, 0.01);
  EXPECT_NEAR(Newest("worker-0").throttled(), 0.75, 0.02);
  job_->CarryOut(ResizeNode::To("worker-0", {.cpus = 0.4}));
  Seconds(10);
  EXPECT_NEAR(Newest("worker-0").cpus(), 0.4, 0.01);
}

TEST_F(DescribedJobTest, ASlowServerHoldsEverybodyUp) {
  spec_.server.replicas = 3;
  spec_.server.time = microseconds(1'000);
  Happens(30, "ps-1", Happening::Slow{5});
  Begin();
  Seconds(29);
  const double rate = RateOf("worker-0");
  Seconds(20);
  EXPECT_LT(RateOf("worker-0"), 0.5 * rate);
  EXPECT_NEAR(ComputingOf("worker-0"), 10'000, 400);
  EXPECT_NEAR(ServingOf("ps-1") / ServingOf("ps-2"), 5, 0.01);
  EXPECT_LT(Newest("ps-1").throttled(), 0.01);
}

TEST_F(DescribedJobTest, NobodyGetsOnWhileAServerIsAway) {
  Happens(20, "ps-0", Happening::Exits{1});
  Begin();
  Seconds(19);
  EXPECT_EQ(Seconds(1).at(0).exit, "exit 1");
  const uint64_t trained = job_->view().records_trained;
  Seconds(2);
  EXPECT_EQ(job_->view().activity, Activity::kReplaying);
  EXPECT_EQ(job_->view().records_trained, trained);
  Seconds(5);
  EXPECT_EQ(job_->view().activity, Activity::kTraining);
  EXPECT_GT(job_->view().records_trained, trained);
}

TEST_F(DescribedJobTest, AHang) {
  Happens(20, "worker-1", Happening::Hangs{});
  Begin();
  Seconds(30);
  const Span span = Newest("worker-1");
  EXPECT_EQ(span.end->worker.minibatches, span.begin->worker.minibatches);
  EXPECT_EQ(span.end->worker.shards_held, 2u);
  EXPECT_LT(span.cpus(), 0.01);
}

TEST_F(DescribedJobTest, APreemptionTakesThePlaceForAWhile) {
  Happens(20, "worker-1", Happening::Preempted{seconds(30)});
  Begin();
  const std::vector<NodeEnd> ends = Seconds(25);
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(ends[0].cause, EndCause::kDisrupted);
  EXPECT_EQ(ends[0].disruption, Disruption::kPreempted);
  EXPECT_EQ(Node("worker-1").state, NodeState::kWaiting);
  EXPECT_EQ(Node("worker-1").wait, NodeWait::kUnschedulable);
  EXPECT_EQ(Node("worker-1").start, 2u);
  EXPECT_EQ(Node("worker-1").placed_limits, Node("worker-1").limits);
  Seconds(40);
  EXPECT_EQ(Node("worker-1").state, NodeState::kRunning);
  EXPECT_EQ(Node("worker-1").wait, NodeWait::kNone);
  EXPECT_EQ(Node("worker-1").start, 2u) << "the same start";
}

TEST_F(DescribedJobTest, FewerWorkersAreThoseWithoutAPlaceFirst) {
  Happens(20, "worker-0", Happening::Preempted{seconds(300)});
  Begin();
  Seconds(25);
  job_->CarryOut(ScaleWorkers{1});
  EXPECT_EQ(FindNode(job_->view(), "worker-0"), nullptr);
  EXPECT_EQ(Node("worker-1").state, NodeState::kRunning);
  job_->CarryOut(ScaleWorkers{2});
  Seconds(5);
  EXPECT_EQ(Node("worker-0").state, NodeState::kWaiting) << "there is still no room";
}

TEST_F(DescribedJobTest, WorkersComeAndGoAndShareTheMachine) {
  spec_.worker.cpus = 1;
  spec_.machine.cpus = 4;
  spec_.workers_max = 12;
  Begin();
  Seconds(20);
  const double rate = RateOf("worker-0");
  job_->CarryOut(ScaleWorkers{8});
  Seconds(20);
  EXPECT_THAT(job_->view().nodes, SizeIs(9));
  EXPECT_LT(RateOf("worker-0"), 0.7 * rate);
  EXPECT_LT(RateOf("worker-7"), 0.7 * rate);
  job_->CarryOut(ScaleWorkers{1});
  Seconds(20);
  EXPECT_THAT(job_->view().nodes, SizeIs(2));
  EXPECT_NEAR(RateOf("worker-0"), rate, 0.05 * rate);
}

TEST_F(DescribedJobTest, AFailedJobIsOver) {
  Begin();
  Seconds(5);
  job_->CarryOut(FailJob{"no more memory"});
  Seconds(1);
  EXPECT_TRUE(job_->over());
  EXPECT_EQ(job_->failure(), "no more memory");
}

TEST_F(DescribedJobTest, WhatDoesNotFitTogetherIsRefused) {
  const auto refused = [this](const char* what) {
    const absl::Status checked = CheckDescribed(std::exchange(spec_, {}));
    EXPECT_EQ(checked.code(), absl::StatusCode::kInvalidArgument) << what;
    EXPECT_THAT(std::string(checked.message()), HasSubstr(what));
  };
  spec_.duration = seconds(86'401);
  refused("86401 s");
  spec_.server.replicas = 65;
  refused("ps: replicas is 65");
  spec_.worker.limits.memory_bytes = 50 * kMiB;
  refused("more than its limit of 50 MiB");
  spec_.worker.limits.memory_bytes = 500 * kMiB;
  spec_.worker.max.memory_bytes = 400 * kMiB;
  refused("more than its maximum of 400 MiB");
  spec_.workers_max = 1;
  refused("maxReplicas (1)");
  Happens(5, "worker-2", Happening::Killed{});
  refused("no node 'worker-2'");
  Happens(5, "ps-x", Happening::Killed{});
  refused("no node 'ps-x'");
  Happens(601, "ps-0", Happening::Killed{});
  refused("at 601 s");
  spec_.machine.cpus = 0;
  refused("machine");
  spec_.worker.time = microseconds(0);
  refused("worker: the time");
}

}  // namespace
}  // namespace muster::scaler
