#include "scaler/sensor/job_sensor.h"

#include <gmock/gmock.h>

#include <cmath>

#include "scaler/model/sample_span.h"
#include "tests/scaler/sensor/sensed_job.h"

namespace muster::scaler {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const NodeView& NodeIn(const JobView& view, const std::string& name) {
  const NodeView* node = FindNode(view, name);
  EXPECT_NE(node, nullptr) << name;
  return *node;
}

TEST(JobSensorTest, JoinsReadingsAndTotals) {
  JobShape shape;
  shape.roles[NodeRole::kWorker].requested.cpus = 2;
  shape.machine.cpus = 8;
  shape.workers_max = 3;
  SensedJob job(shape);
  const JobView& view = job.Seconds(5);
  EXPECT_EQ(view.activity, Activity::kTraining);
  EXPECT_EQ(view.now, job.now);
  EXPECT_EQ(view.machine.cpus, 8);
  EXPECT_EQ(view.workers_max, 3u);
  EXPECT_EQ(view.records_left, 990'000u);
  const NodeView& worker = NodeIn(view, "worker-0");
  EXPECT_EQ(worker.state, NodeState::kRunning);
  EXPECT_EQ(worker.requested.cpus, 2);
  ASSERT_THAT(worker.samples, SizeIs(5));
  EXPECT_EQ(worker.samples.back().worker.minibatches, 50u);
  EXPECT_EQ(worker.samples.back().worker.computing, seconds(3));
  EXPECT_EQ(worker.samples.back().cpu, microseconds(2'500'000));
  const NodeView& server = NodeIn(view, "ps-0");
  EXPECT_EQ(server.samples.back().server.pulls, 100u);
  EXPECT_EQ(server.samples.back().server.parts, 100u);
  EXPECT_EQ(server.samples.back().server.moved_bytes, 600'000u);
  EXPECT_EQ(server.samples.back().server.peer_round_trip, microseconds(50'000));
}

TEST(JobSensorTest, TheBacklogOfAnOpenTopicCountsWithWhatIsLeftOfOtherData) {
  SensedJob job;
  EXPECT_EQ(job.Second().backlog_records, std::nullopt);
  job.status.datasets.push_back(
      {.epochs = {{.records_expected = 1'000}}, .stream = StreamStatus{.lag = 70'000}});
  EXPECT_EQ(job.Second().backlog_records, std::nullopt) << "one that has an end is as other data";
  job.status.datasets[1].stream->open = true;
  job.status.datasets.push_back({.mode = "evaluate", .epochs = {{.records_expected = 50}}});
  const JobView& view = job.Second();
  EXPECT_EQ(view.backlog_records, 70'000u + view.records_left - 1'000);
  job.status.datasets[1].stream->lag.reset();
  EXPECT_EQ(job.Second().backlog_records, std::nullopt) << "not known is not 0";
}

TEST(JobSensorTest, IdleCoresAreTakenOverTheNewestSeconds) {
  SensedJob job;
  microseconds idle = seconds(1'000);
  const auto run = [&](int seconds, microseconds each) {
    for (int i = 0; i < seconds; ++i) {
      idle += each;
      job.sensor.OnMachine(idle, job.now);
      job.Second();
    }
    return job.Second().idle_cpus;
  };
  EXPECT_EQ(run(5, seconds(3)), std::nullopt) << "too short";
  EXPECT_NEAR(run(10, seconds(3)).value(), 3, 0.3);
  EXPECT_NEAR(run(25, microseconds(500'000)).value(), 0.5, 0.05);
  job.sensor.OnMachine(std::nullopt, job.now);
  EXPECT_EQ(job.Second().idle_cpus, std::nullopt);
  run(15, seconds(1));
  idle = microseconds(0);
  EXPECT_EQ(run(1, seconds(1)), std::nullopt) << "it went back";
}

TEST(JobSensorTest, WhatIsNotStartedIsPlannedAndWhatIsOverIsGone) {
  SensedJob job;
  job.kept.push_back({.name = "worker-2"});
  job.Kept("worker-1").state = KeptNode::State::kFinished;
  job.Kept("worker-0").state = KeptNode::State::kReporting;
  const JobView& view = job.Second();
  EXPECT_EQ(NodeIn(view, "worker-2").state, NodeState::kPlanned);
  EXPECT_EQ(NodeIn(view, "worker-0").state, NodeState::kExited);
  EXPECT_EQ(FindNode(view, "worker-1"), nullptr);
}

TEST(JobSensorTest, TheLastEndOfAFinishedNodeIsSeenWithIt) {
  SensedJob job;
  job.Second();
  job.Kept("worker-1").state = KeptNode::State::kFinished;
  job.sensor.OnEnd({.node = "worker-1", .start = 1, .cause = EndCause::kClean});
  const JobView& view = job.Second();
  EXPECT_EQ(NodeIn(view, "worker-1").state, NodeState::kExited);
  EXPECT_THAT(view.ends, SizeIs(1));
  EXPECT_EQ(FindNode(job.Second(), "worker-1"), nullptr);
}

TEST(JobSensorTest, EndsAndActionsAreInOneViewOnly) {
  SensedJob job;
  job.sensor.OnEnd({.node = "worker-1", .start = 1});
  job.sensor.OnTaken({.policy = "hang", .target = "worker-0"});
  const JobView& view = job.Second();
  EXPECT_THAT(view.ends, SizeIs(1));
  EXPECT_THAT(view.taken, SizeIs(1));
  const JobView& next = job.sensor.View(job.kept, job.now);
  EXPECT_THAT(next.ends, IsEmpty());
  EXPECT_THAT(next.taken, IsEmpty());
}

TEST(JobSensorTest, WhoseDoingAnEndWas) {
  constexpr ExitStatus kKilled{.signal = 9};
  struct Case {
    ExitStatus exit;
    MemoryKill kill;
    bool told;
    EndCause cause;
    uint64_t limit;
  };
  for (const Case& c :
       std::vector<Case>{{kKilled, MemoryKill::kKernel, false, EndCause::kKernelOutOfMemory, 50},
                         {kKilled, MemoryKill::kKernel, true, EndCause::kKernelOutOfMemory, 50},
                         {kKilled, MemoryKill::kMachine, false, EndCause::kKernelOutOfMemory, 0},
                         {kKilled, MemoryKill::kOwn, false, EndCause::kOwnOutOfMemory, 50},
                         {kKilled, MemoryKill::kNone, false, EndCause::kPlatform, 50},
                         {kKilled, MemoryKill::kNone, true, EndCause::kAsked, 50},
                         {{.code = 1}, MemoryKill::kNone, false, EndCause::kProgram, 50},
                         {{.signal = 11}, MemoryKill::kNone, false, EndCause::kProgram, 50},
                         {{}, MemoryKill::kNone, false, EndCause::kClean, 50}}) {
    SensedJob job;
    KeptNode& kept = job.Kept("worker-0");
    kept.told_to_end = c.told;
    const NodeEnd end = job.sensor.OnExit({.node = "worker-0",
                                           .exit = c.exit,
                                           .memory_kill = c.kill,
                                           .memory_peak_bytes = 60,
                                           .memory_limit_bytes = 50},
                                          kept, job.now);
    EXPECT_EQ(end.cause, c.cause);
    EXPECT_EQ(end.memory_limit_bytes, c.limit);
    EXPECT_EQ(end.memory_peak_bytes, 60u);
    EXPECT_EQ(end.start, 1u);
    EXPECT_THAT(job.Second().ends, SizeIs(1));
  }
}

TEST(JobSensorTest, WhoCouldNotBeStartedIsNobodysDoing) {
  SensedJob job;
  EXPECT_EQ(job.sensor
                .OnExit({.node = "worker-0", .exit = {.code = 126}, .not_started = true},
                        job.Kept("worker-0"), job.now)
                .cause,
            EndCause::kNotStarted);
}

TEST(JobSensorTest, WhatItsKeeperCountedGoesWithTheEnd) {
  SensedJob job;
  job.Kept("worker-0").exits = 3;
  const auto end = [&] {
    return job.sensor.OnExit({.node = "worker-0"}, job.Kept("worker-0"), job.now);
  };
  EXPECT_EQ(end().exits, 3u);
  EXPECT_FALSE(end().progressed);
  job.Kept("worker-0").progressed = true;
  EXPECT_TRUE(end().progressed);
}

TEST(JobSensorTest, ANewLifeBeginsAnew) {
  SensedJob job;
  job.Seconds(10);
  job.Restart("worker-0");
  // The master still has the figures of the process before.
  const JobView& view = job.Second();
  EXPECT_EQ(NodeIn(view, "worker-0").state, NodeState::kStarting);
  ASSERT_THAT(NodeIn(view, "worker-0").samples, SizeIs(1));
  EXPECT_EQ(NodeIn(view, "worker-0").samples[0].worker.minibatches, 0u);
  EXPECT_EQ(NodeIn(view, "worker-0").samples[0].cpu, microseconds(500'000));
  job.Appear("worker-0");
  job.Second();
  const NodeView& worker = NodeIn(job.Second(), "worker-0");
  EXPECT_EQ(worker.state, NodeState::kRunning);
  EXPECT_EQ(worker.start, 2u);
  ASSERT_THAT(worker.samples, SizeIs(3));
  EXPECT_EQ(worker.samples.back().worker.minibatches, 20u);
}

TEST(JobSensorTest, AReadingOfALifeBeforeIsNotTaken) {
  SensedJob job;
  job.Seconds(2);
  job.Restart("worker-0");
  NodeReading late{.node = "worker-0", .start = 1, .usage = {.cpu = seconds(100)}};
  job.now += seconds(1);
  job.sensor.OnReading({late}, job.now, job.wall);
  EXPECT_THAT(NodeIn(job.sensor.View(job.kept, job.now), "worker-0").samples, IsEmpty());
}

TEST(JobSensorTest, AnAnswerAboutTheLifeBeforeIsNoWordAboutThisOne) {
  SensedJob job;
  job.Seconds(2);
  job.now += seconds(1);
  // The kernel gave the same pid again, and the master has not heard of the new process.
  const uint64_t pid = job.Kept("worker-0").pid;
  job.Restart("worker-0");
  job.Kept("worker-0").pid = pid;
  EXPECT_EQ(NodeIn(job.Second(), "worker-0").state, NodeState::kStarting);
}

TEST(JobSensorTest, ASecondSessionOfAProcessBeginsAnew) {
  SensedJob job;
  job.Seconds(10);
  job.Appear("worker-0");
  const NodeView& worker = NodeIn(job.Second(), "worker-0");
  ASSERT_THAT(worker.samples, SizeIs(1));
  EXPECT_EQ(worker.samples[0].worker.minibatches, 10u);
}

TEST(JobSensorTest, WhatWasDoneBeforeTheFirstWordIsNoBurst) {
  SensedJob job;
  WorkerTimes& times = job.Status("worker-0").worker->times;
  times.minibatches_finished = 5'000;
  times.records_trained = 500'000;
  times.compute_us = 300'000'000;
  job.answers = false;  // a scaler that was restarted while the master is away
  job.Seconds(4);
  job.Status("worker-0").state = NodeState::kRunning;
  EXPECT_EQ(NodeIn(job.sensor.View(job.kept, job.now), "worker-0").state, NodeState::kStarting);
  job.answers = true;
  const JobView& view = job.Seconds(2);
  const NodeView& worker = NodeIn(view, "worker-0");
  const std::optional<Span> span = SpanSince(worker, worker.samples[0].at, seconds(1));
  ASSERT_TRUE(span.has_value());
  EXPECT_LE(span->end->worker.minibatches - span->begin->worker.minibatches, 20u);
  EXPECT_LE(view.records_trained, 8'000u);
}

TEST(JobSensorTest, AFailedReadingHoldsTheFiguresOfTheLast) {
  SensedJob job;
  job.Seconds(3);
  job.unread = "worker-0";
  const NodeView& worker = NodeIn(job.Seconds(2), "worker-0");
  ASSERT_THAT(worker.samples, SizeIs(5));
  EXPECT_EQ(worker.samples.back().cpu, microseconds(1'500'000));
  EXPECT_EQ(worker.samples.back().memory_bytes, 100u);
  EXPECT_EQ(worker.samples.back().worker.minibatches, 50u);
}

TEST(JobSensorTest, ARestartedMasterTakesNothingBack) {
  SensedJob job;
  const JobView* view = &job.Seconds(10);
  const uint64_t trained = view->records_trained;
  const PeerTimes before = job.PeersOf("ps-0");
  job.status.master_incarnation = 2;
  job.Status("worker-0").worker->times = {};
  job.PeersOf("ps-0") = {};
  view = &job.Second();
  EXPECT_EQ(NodeIn(*view, "worker-0").samples.back().worker.minibatches, 100u);
  EXPECT_EQ(NodeIn(*view, "ps-0").samples.back().server.peer_requests, before.pulls);
  EXPECT_EQ(view->records_trained, trained + 1'000);  // worker-1's
}

TEST(JobSensorTest, WhatWorkersTellTheNextMasterAgainIsNoBurst) {
  for (const bool one_ended : {false, true}) {
    SCOPED_TRACE(one_ended);
    SensedJob job;
    job.Seconds(10);
    PeerTimes& peers = job.PeersOf("ps-0");
    const uint64_t pulls = peers.pulls;
    const uint64_t pull_us = peers.pull_us;
    job.status.master_incarnation = 2;
    peers = {};
    job.Second();
    peers.pulls = one_ended ? 40 : pulls;
    peers.pull_us = one_ended ? 20'000 : pull_us;
    const NodeView& node = NodeIn(job.Seconds(20), "ps-0");
    const std::optional<Span> all = SpanSince(node, node.samples[0].at, seconds(1));
    ASSERT_TRUE(all.has_value());
    EXPECT_LE(all->end->server.peer_requests, pulls + 20 * 20);
    const std::optional<Span> newest = SpanSince(node, job.now - seconds(5), seconds(1));
    ASSERT_TRUE(newest.has_value());
    EXPECT_EQ(newest->end->server.peer_requests - newest->begin->server.peer_requests, 100u);
    EXPECT_EQ(newest->end->server.peer_round_trip - newest->begin->server.peer_round_trip,
              microseconds(50'000));
  }
}

TEST(JobSensorTest, SamplesAreBounded) {
  SensedJob job;
  const NodeView& worker = NodeIn(job.Seconds(1'500), "worker-0");
  EXPECT_GE(worker.samples.size(), 600u);
  EXPECT_LE(worker.samples.size(), 660u);
  EXPECT_EQ(worker.samples.back().at, job.now);
}

TEST(JobSensorTest, States) {
  SensedJob job;
  job.Second();
  job.Status("worker-0").state = NodeState::kLost;
  job.Status("worker-1").drain = DrainState::kDraining;
  job.Status("ps-0").server->partitions = 4;
  job.Status("ps-0").server->partitions_serving = 3;
  const JobView& view = job.Second();
  EXPECT_EQ(NodeIn(view, "worker-0").state, NodeState::kLost);
  EXPECT_EQ(NodeIn(view, "worker-1").state, NodeState::kDraining);
  EXPECT_EQ(NodeIn(view, "ps-0").state, NodeState::kStarting);
  EXPECT_EQ(NodeIn(view, "ps-0").samples.back().server.partitions_serving, 3u);
  job.Status("ps-0").server->partitions_serving = 4;
  job.Status("ps-0").drain = DrainState::kDrained;
  job.Status("worker-1").drain = DrainState::kDrained;
  const JobView& drained = job.Second();
  EXPECT_EQ(NodeIn(drained, "ps-0").state, NodeState::kRunning) << "it serves on";
  EXPECT_TRUE(NodeIn(drained, "ps-0").drained);
  EXPECT_EQ(NodeIn(drained, "worker-1").state, NodeState::kDraining) << "it ends by itself";
  EXPECT_FALSE(NodeIn(drained, "worker-0").drained);
  job.Kept("ps-0").told_to_end = true;
  EXPECT_EQ(NodeIn(job.Second(), "ps-0").state, NodeState::kDraining);
}

class ActivityTest : public ::testing::Test {
 protected:
  SensedJob job_;
};

TEST_F(ActivityTest, StartsUntilSomethingWasTrained) {
  job_.Status("worker-0").state = NodeState::kStarting;
  job_.Status("worker-1").state = NodeState::kStarting;
  EXPECT_EQ(job_.Second().activity, Activity::kStarting);
  job_.Status("worker-1").state = NodeState::kRunning;
  EXPECT_EQ(job_.Second().activity, Activity::kTraining);
}

TEST_F(ActivityTest, AMasterThatIsAwayBlamesNobody) {
  job_.Second();
  job_.answers = false;
  EXPECT_EQ(job_.Seconds(5).activity, Activity::kTraining);
  EXPECT_TRUE(job_.sensor.View(job_.kept, job_.now).master_heard);
  EXPECT_EQ(job_.Second().activity, Activity::kStarting);
  EXPECT_FALSE(job_.sensor.View(job_.kept, job_.now).master_heard);
  job_.answers = true;
  EXPECT_EQ(job_.Second().activity, Activity::kTraining);
  EXPECT_TRUE(job_.sensor.View(job_.kept, job_.now).master_heard);
}

TEST_F(ActivityTest, AnOvertakenAnswerIsIgnored) {
  job_.Second();
  JobStatus old = job_.status;
  old.state = JobState::kSucceeded;
  job_.sensor.OnStatus(old, job_.now - seconds(1));
  EXPECT_EQ(job_.sensor.View(job_.kept, job_.now).activity, Activity::kTraining);
}

TEST_F(ActivityTest, AServerThatRestoresAndWhatRunsAgain) {
  job_.Seconds(5);
  job_.Status("ps-0").server->partitions = 2;
  EXPECT_EQ(job_.Second().activity, Activity::kReplaying);
  job_.Status("ps-0").server->partitions_serving = 2;
  job_.Epoch().records_done = 5'000;                          // 12,000 before
  EXPECT_EQ(job_.Second().activity, Activity::kReplaying);    // 7,000
  EXPECT_EQ(job_.Seconds(2).activity, Activity::kReplaying);  // 11,000
  EXPECT_EQ(job_.Second().activity, Activity::kTraining);     // 13,000
}

TEST_F(ActivityTest, AReplayThatNeverEndsIsTrainingInTheEnd) {
  job_.Seconds(5);
  job_.Epoch().records_done = 0;
  job_.advances = false;
  EXPECT_EQ(job_.Seconds(100).activity, Activity::kReplaying);
  EXPECT_EQ(job_.Seconds(30).activity, Activity::kTraining);
}

TEST_F(ActivityTest, EvaluatingWhileItsShardsAreOut) {
  job_.Second();
  job_.status.datasets.push_back({.mode = "evaluate", .epochs = {{.shards = {.leased = 1}}}});
  EXPECT_EQ(job_.Second().activity, Activity::kEvaluating);
  job_.status.datasets[1].epochs[0].shards.leased = 0;
  EXPECT_EQ(job_.Second().activity, Activity::kTraining);
}

TEST_F(ActivityTest, AnOpenTopicIsNeverAllDone) {
  job_.Second();
  StreamStatus& stream = job_.status.datasets[0].stream.emplace();
  stream.open = true;
  job_.Epoch().records_done = 1'000'000;
  EXPECT_EQ(job_.Second().activity, Activity::kTraining);
  EXPECT_FALSE(job_.Second().sources_away);
  stream.trouble = "no broker answers";
  EXPECT_TRUE(job_.Second().sources_away);
  stream.open = false;
  EXPECT_EQ(job_.Second().activity, Activity::kDraining);
}

TEST_F(ActivityTest, AllDoneThenOver) {
  job_.Second();
  job_.advances = false;
  job_.Epoch().records_done = 1'000'000;
  EXPECT_EQ(job_.Second().activity, Activity::kDraining);
  job_.status.state = JobState::kDraining;
  EXPECT_EQ(job_.Second().activity, Activity::kDraining);
  job_.status.state = JobState::kSucceeded;
  EXPECT_EQ(job_.Second().activity, Activity::kOver);
}

TEST(JobSensorTest, TheRateIsTheNewestFigureAlsoAfterScaling) {
  SensedJob job;
  job.Seconds(20);
  job.Add(NodeRole::kWorker, "worker-2");
  for (int i = 0; i < 12; ++i) {
    job.Second();
    const rest::Samples samples = job.sensor.Since("", 0, 600);
    const auto of_job = std::ranges::find_if(samples.series, [](const rest::SampleSeries& series) {
      return series.node.empty() && series.name == "records_per_second";
    });
    ASSERT_NE(of_job, samples.series.end());
    EXPECT_NEAR(job.sensor.Rate(), of_job->values.back(), 1) << "second " << i;
  }
  EXPECT_NEAR(job.sensor.Rate(), 3'000, 1);
  // One stands still: over 3 s, nothing of it is left; over 10 s, some.
  job.Status("worker-2").state = NodeState::kLost;
  job.Seconds(4);
  EXPECT_NEAR(job.sensor.Rate(), 2'000, 1);
  EXPECT_EQ(job.sensor.RateOf("worker-2"), 0);
  EXPECT_GT(job.sensor.SteadyRate(), 1'999);
}

TEST(JobSensorTest, FiguresOfTheDashboard) {
  SensedJob job;
  job.Seconds(20);
  EXPECT_NEAR(job.sensor.Rate(), 2'000, 1);
  EXPECT_NEAR(job.sensor.RateOf("worker-0"), 1'000, 1);
  EXPECT_EQ(job.sensor.RateOf("ps-0"), 0);
  const std::optional<rest::Usage> usage = job.sensor.UsageOf("worker-0");
  ASSERT_TRUE(usage.has_value());
  EXPECT_NEAR(usage->cpus, 0.5, 1e-9);
  EXPECT_EQ(usage->cpu, seconds(10));
  EXPECT_EQ(usage->memory_bytes, 100u);
  EXPECT_FALSE(job.sensor.UsageOf("worker-9").has_value());
  // Two cores that wait at once are two seconds a second for the kernel.
  for (int i = 0; i < 5; ++i) {
    job.readings["worker-0"].usage.throttled += seconds(2);
    job.Second();
  }
  EXPECT_EQ(job.sensor.UsageOf("worker-0")->throttled_ratio, 1);

  const rest::Samples samples = job.sensor.Since("", 0, 600);
  ASSERT_THAT(samples.times_us, SizeIs(25));
  std::map<std::string, double> newest;
  for (const rest::SampleSeries& series : samples.series) {
    ASSERT_THAT(series.values, SizeIs(25)) << series.name;
    newest[series.node + " " + series.name] = series.values.back();
  }
  EXPECT_NEAR(newest.at(" records_per_second"), 2'000, 1);
  EXPECT_NEAR(newest.at("worker-1 records_per_second"), 1'000, 1);
  EXPECT_NEAR(newest.at("worker-1 computing"), 0.6, 1e-6);
  EXPECT_NEAR(newest.at("worker-1 waiting_pulls"), 0.4, 1e-6);
  EXPECT_NEAR(newest.at("worker-1 waiting_shards"), 0, 1e-6);
  EXPECT_NEAR(newest.at("ps-0 pulls_per_second"), 20, 1e-6);
  EXPECT_NEAR(newest.at("ps-0 service_time"), 100, 1e-3);
  EXPECT_NEAR(newest.at("ps-0 round_trip"), 500, 1e-3);
  EXPECT_NEAR(newest.at("ps-0 memory"), 100, 1e-6);
  EXPECT_FALSE(newest.contains("ps-0 memory_limit"));
  EXPECT_FALSE(newest.contains("ps-0 memory_pressure"));
}

}  // namespace
}  // namespace muster::scaler
