#include "scaler/history/history_line.h"

#include <gmock/gmock.h>

#include "tests/scaler/sensor/sensed_job.h"

namespace muster::scaler {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(HistoryLineTest, AHead) {
  HistoryHead head{.run_id = "r1", .job = "flights"};
  head.shape.roles[NodeRole::kServer] = {.requested = {.cpus = 1, .memory_bytes = 5},
                                         .min = {.cpus = 0.5, .memory_bytes = 4},
                                         .max = {.cpus = 2, .memory_bytes = 6}};
  head.shape.budget = {.cpus = 8, .memory_bytes = 80};
  head.shape.machine = {.cpus = 16, .memory_bytes = 160};
  head.shape.workers_min = 2;
  head.shape.workers_max = 7;
  head.shape.history[NodeRole::kWorker] = {.memory_peak_bytes = 9, .cpus_p95 = 1.25, .runs = 3};
  const auto parsed = ParseHistoryLine(HistoryLine(head));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const HistoryHead& read = std::get<HistoryHead>(*parsed);
  EXPECT_EQ(read.run_id, "r1");
  EXPECT_EQ(read.job, "flights");
  EXPECT_EQ(read.shape.roles.at(NodeRole::kServer).requested.memory_bytes, 5u);
  EXPECT_EQ(read.shape.roles.at(NodeRole::kServer).min.cpus, 0.5);
  EXPECT_EQ(read.shape.roles.at(NodeRole::kServer).max.memory_bytes, 6u);
  EXPECT_EQ(read.shape.budget, head.shape.budget);
  EXPECT_EQ(read.shape.machine, head.shape.machine);
  EXPECT_EQ(read.shape.workers_max, 7u);
  EXPECT_EQ(read.shape.history.at(NodeRole::kWorker).cpus_p95, 1.25);
  EXPECT_EQ(read.shape.history.at(NodeRole::kWorker).runs, 3u);
}

TEST(HistoryLineTest, AMomentInWallTime) {
  SensedJob job;
  job.Kept("ps-0").limits = {.cpus = 1.5, .memory_bytes = 512};
  job.Status("ps-0").server->partitions = 4;
  job.Status("ps-0").server->partitions_serving = 4;
  job.status.datasets[0].stream = StreamStatus{.open = true, .lag = 77};
  for (int i = 0; i < 15; ++i) job.sensor.OnMachine(seconds(i), job.now + seconds(i));
  job.Seconds(3);
  job.sensor.OnEnd({.node = "worker-1",
                    .role = NodeRole::kWorker,
                    .start = 1,
                    .at = job.now,
                    .cause = EndCause::kPlatform,
                    .exit = "SIGKILL \xff",
                    .progressed = true,
                    .exits = 4,
                    .memory_peak_bytes = 70,
                    .memory_limit_bytes = 80});
  job.sensor.OnTaken(
      {.policy = "hang", .target = "ps-0", .action = Action::kDumpStacks, .at = job.now});
  const JobView& view = job.Second();
  const WallTime wall = hours(400'000);
  const auto parsed = ParseHistoryLine(HistoryLine(view, wall, view.now - seconds(1)));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const HistoryMoment& read = std::get<HistoryMoment>(*parsed);
  const TimePoint now(wall);
  EXPECT_EQ(read.at, now);
  EXPECT_EQ(read.activity, Activity::kTraining);
  EXPECT_TRUE(read.master_heard);
  EXPECT_EQ(read.nodes.at(0).sample.value().server.partitions_serving, 4u);
  EXPECT_GT(read.nodes.at(0).sample.value().server.moved_bytes, 0u);
  EXPECT_EQ(read.records_trained, view.records_trained);
  EXPECT_EQ(read.records_left, view.records_left);
  ASSERT_TRUE(view.backlog_records.has_value() && view.idle_cpus.has_value());
  EXPECT_EQ(read.backlog_records, view.backlog_records);
  EXPECT_EQ(read.idle_cpus, view.idle_cpus);
  ASSERT_THAT(read.nodes, SizeIs(3));
  EXPECT_EQ(read.nodes[0].limits.cpus, 1.5);
  EXPECT_EQ(read.nodes[0].started_at, now - seconds(4));
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(read.nodes[i].sample.has_value());
    const NodeSample &got = *read.nodes[i].sample, &want = view.nodes[i].samples.back();
    EXPECT_EQ(read.nodes[i].name, view.nodes[i].name);
    EXPECT_EQ(got.at, now);
    EXPECT_EQ(got.cpu, want.cpu);
    EXPECT_EQ(got.memory_bytes, want.memory_bytes);
    EXPECT_EQ(got.memory_pressure_percent, -1);
    EXPECT_EQ(got.worker.records, want.worker.records);
    EXPECT_EQ(got.worker.minibatches, want.worker.minibatches);
    EXPECT_EQ(got.worker.computing, want.worker.computing);
    EXPECT_EQ(got.worker.waiting_pulls, want.worker.waiting_pulls);
    EXPECT_EQ(got.server.pulls, want.server.pulls);
    EXPECT_EQ(got.server.parts, want.server.parts);
    EXPECT_EQ(got.server.moved_bytes, want.server.moved_bytes);
    EXPECT_EQ(got.server.serving, want.server.serving);
    EXPECT_EQ(got.server.peer_requests, want.server.peer_requests);
    EXPECT_EQ(got.server.peer_round_trip, want.server.peer_round_trip);
    EXPECT_EQ(got.server.partitions_serving, want.server.partitions_serving);
  }
  ASSERT_THAT(read.ends, SizeIs(1));
  EXPECT_EQ(read.ends[0].at, now - seconds(1));
  EXPECT_EQ(read.ends[0].cause, EndCause::kPlatform);
  EXPECT_THAT(read.ends[0].exit, HasSubstr("SIGKILL"));
  EXPECT_TRUE(read.ends[0].progressed && read.ends[0].exits == 4);
  EXPECT_EQ(read.ends[0].memory_limit_bytes, 80u);
  ASSERT_THAT(read.taken, SizeIs(1));
  EXPECT_EQ(read.taken[0].policy, "hang");
  EXPECT_EQ(read.taken[0].action, Action::kDumpStacks);
}

TEST(HistoryLineTest, TheStepThatAGroupAwaits) {
  SensedJob job;
  job.status.group = GroupStatus{.step = 6,
                                 .step_in_work = 7,
                                 .waits = "",
                                 .processes = {{.worker = "worker-0",
                                                .standing = GroupStanding::kMember,
                                                .rank = 0,
                                                .minibatch_us = std::nullopt,
                                                .step = 6,
                                                .waits = "",
                                                .awaited = true,
                                                .moved = 70},
                                               {.worker = "worker-1",
                                                .standing = GroupStanding::kMember,
                                                .rank = 1,
                                                .minibatch_us = std::nullopt,
                                                .step = 6,
                                                .waits = ""}}};
  const JobView& view = job.Second();
  const auto parsed = ParseHistoryLine(HistoryLine(view, hours(1), view.now - seconds(1)));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  for (const HistoryNode& node : std::get<HistoryMoment>(*parsed).nodes) {
    ASSERT_TRUE(node.sample.has_value());
    const bool awaited = node.name == "worker-0";
    EXPECT_EQ(node.sample->worker.awaited_step, awaited ? 7u : 0u) << node.name;
    EXPECT_EQ(node.sample->worker.peers_waiting, awaited ? 1u : 0u) << node.name;
    EXPECT_EQ(node.sample->worker.group_part, awaited ? GroupPart::kStep : GroupPart::kNone);
    EXPECT_EQ(node.sample->worker.group_moved, awaited ? 70u : 0u);
  }
}

TEST(HistoryLineTest, ThatTheMasterIsAway) {
  SensedJob job;
  job.answers = false;
  const JobView& view = job.Second();
  const auto parsed = ParseHistoryLine(HistoryLine(view, hours(1), view.now));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(std::get<HistoryMoment>(*parsed).master_heard);
}

TEST(HistoryLineTest, ASampleIsInOneLineOnly) {
  SensedJob job;
  const JobView& view = job.Second();
  const auto parsed = ParseHistoryLine(HistoryLine(view, hours(1), view.now));
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(std::get<HistoryMoment>(*parsed).nodes[0].sample.has_value());
}

TEST(HistoryLineTest, WhatCannotBeRead) {
  for (const std::string& line : std::vector<std::string>{
           "", "{", "[]", "null", "{\"v\":2}", "{\"v\":\"x\"}", "{\"t\":1}",
           R"({"t":1,"a":9,"r":0,"l":0,"n":[]})", R"({"t":1,"a":0,"r":0,"l":0,"n":[["x",9]]})",
           R"({"t":1,"a":0,"r":-1.5,"l":"0","n":[]})", R"({"t":-1,"a":0,"r":0,"l":0,"n":[]})",
           R"({"t":9223372036854775807,"a":0,"r":0,"l":0,"n":[]})",
           R"({"t":1,"a":0,"r":0,"l":0,"n":[["w",2,1,2,0,[0,0],[1,2,3]]]})",
           std::string(kHistoryLineMax + 1, ' ')}) {
    EXPECT_EQ(ParseHistoryLine(line).status().code(), absl::StatusCode::kDataLoss)
        << line.substr(0, 80);
  }
}

TEST(HistoryLineTest, NodesWithoutAPlaceAndPlacesThatWereTakenAway) {
  SensedJob job;
  job.sensor.OnEnd({.node = "worker-1",
                    .at = job.now,
                    .cause = EndCause::kDisrupted,
                    .disruption = Disruption::kDeleted});
  job.sensor.OnTaken({.action = Action::kScale, .workers_before = 5, .workers_after = 3});
  JobView view = job.Second();
  view.nodes[1].state = NodeState::kWaiting;
  view.nodes[1].wait = NodeWait::kUnreachable;
  view.nodes[1].waits_since = view.now - seconds(7);
  view.nodes[2].wait = NodeWait::kQuota;
  view.nodes[2].placed_limits = Resources{.cpus = 1, .memory_bytes = 5};
  const WallTime wall = hours(400'000);
  const auto parsed = ParseHistoryLine(HistoryLine(view, wall, view.now));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const HistoryMoment& read = std::get<HistoryMoment>(*parsed);
  EXPECT_EQ(read.nodes.at(1).state, NodeState::kWaiting);
  ASSERT_THAT(read.waits, SizeIs(2));
  EXPECT_EQ(read.waits[0].node, view.nodes[1].name);
  EXPECT_EQ(read.waits[0].wait, NodeWait::kUnreachable);
  EXPECT_EQ(read.waits[0].since, TimePoint(wall) - seconds(7));
  EXPECT_EQ(read.waits[0].placed_limits, std::nullopt);
  EXPECT_EQ(read.waits[1].placed_limits, view.nodes[2].placed_limits);
  ASSERT_THAT(read.ends, SizeIs(1));
  EXPECT_EQ(read.ends[0].cause, EndCause::kDisrupted);
  EXPECT_EQ(read.ends[0].disruption, Disruption::kDeleted);
  ASSERT_THAT(read.taken, SizeIs(1));
  EXPECT_EQ(read.taken[0].workers_before, 5u);
  EXPECT_EQ(read.taken[0].workers_after, 3u);
}

}  // namespace
}  // namespace muster::scaler
