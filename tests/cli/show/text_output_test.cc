#include "cli/show/text_output.h"

#include <gmock/gmock.h>

#include <cmath>

#include "proto/fields/json.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TextOutputTest, SaysForHowLongTheJobHasRun) {
  JobStatus status;
  status.name = "demo";
  status.state = JobState::kRunning;
  EXPECT_THAT(StatusText(status), ::testing::StartsWith("demo: running\n"));
  status.uptime_ms = 2'000;  // of a master that was just started again
  status.running_ms = 3'723'000;
  EXPECT_THAT(StatusText(status), ::testing::StartsWith("demo: running, for 1:02:03 so far\n"));
  status.state = JobState::kSucceeded;
  EXPECT_THAT(StatusText(status), ::testing::StartsWith("demo: succeeded after 1:02:03\n"));
}

TEST(TextOutputTest, WhatTheJobWaitsForComesFirst) {
  JobStatus status;
  status.name = "demo";
  status.state = JobState::kRunning;
  status.datasets = {{.name = "clicks", .stream = StreamStatus{.topic = "t", .trouble = "gone"}}};
  EXPECT_THAT(StatusText(status),
              ::testing::StartsWith("demo: running\n  topic t cannot be looked at: gone\n"));
  status.state = JobState::kDrained;
  EXPECT_THAT(StatusText(status), ::testing::Not(HasSubstr("cannot be looked at")));
}

TEST(TextOutputTest, NodesWithoutAPlaceComeBeforeAllElseServersFirst) {
  JobStatus status;
  status.name = "demo";
  status.state = JobState::kRunning;
  status.datasets = {{.name = "clicks", .stream = StreamStatus{.topic = "t", .trouble = "gone"}}};
  const auto add = [&](const std::string& name, const std::string& role, NodeWait wait) {
    NodeStatus& node = status.nodes.emplace_back();
    node.name = name;
    node.role = role;
    node.state = wait == NodeWait::kNone ? NodeState::kRunning : NodeState::kWaiting;
    node.wait = wait;
    node.wait_reason = "0/3 nodes are available\x1b";
  };
  for (const char* name : {"worker-0", "worker-2", "worker-3", "worker-4", "worker-5"}) {
    add(name, "worker", NodeWait::kUnschedulable);
  }
  add("worker-1", "worker", NodeWait::kNone);
  add("ps-1", "ps", NodeWait::kImage);
  EXPECT_THAT(
      StatusText(status),
      ::testing::StartsWith("demo: running\n"
                            "  waits for ps-1: its image cannot be had: 0/3 nodes are available \n"
                            "  waits for worker-0, worker-2, worker-3 and 2 more: no machine has "
                            "room for it: 0/3 nodes are available \n"
                            "  topic t cannot be looked at: gone\n"));
  EXPECT_THAT(NodesText(status), HasSubstr("waiting"));
  EXPECT_THAT(NodesText(status), HasSubstr("its image cannot be had: 0/3 nodes are available "));
  status.state = JobState::kCancelled;
  EXPECT_THAT(StatusText(status), ::testing::Not(HasSubstr("waits for")));
}

TEST(TextOutputTest, RateAndRemainingTimeAreShownWhereTheyAreKnown) {
  JobStatus status;
  status.name = "demo";
  status.state = JobState::kRunning;
  status.progress.records_per_second = 12'345.6;
  EXPECT_THAT(StatusText(status), HasSubstr("\n  12,345 records/s, - left\n"));
  status.progress.remaining_seconds = 83.4;
  EXPECT_THAT(StatusText(status), HasSubstr("\n  12,345 records/s, 1:23 left\n"));
  status.state = JobState::kSucceeded;
  EXPECT_THAT(StatusText(status), ::testing::Not(HasSubstr("records/s")));
}

TEST(TextOutputTest, ALongJobShowsTheNewestEpochsAndTotals) {
  JobStatus status;
  DatasetStatus& dataset = status.datasets.emplace_back(DatasetStatus{.name = "train"});
  dataset.epochs_total = 250;
  for (uint32_t e = 0; e < 250; ++e) {
    dataset.epochs.push_back({.epoch = e, .records_expected = 1'000});
    if (e < 100) dataset.epochs[e].records_done = dataset.epochs[e].records_committed = 1'000;
  }
  EXPECT_THAT(StatusText(status), HasSubstr("DATASET  EPOCH    RECORDS  DONE     COMMITTED"));
  EXPECT_THAT(StatusText(status), AllOf(HasSubstr("train    1-97     97,000   97,000   97,000 "),
                                        HasSubstr("train    98       1,000    1,000    1,000 "),
                                        HasSubstr("train    100      1,000    1,000    1,000 "),
                                        HasSubstr("train    101-250  150,000  0        0 "),
                                        HasSubstr("train    all      250,000  100,000  100,000 "),
                                        HasSubstr("each epoch by itself: --all-epochs\n"),
                                        Not(HasSubstr("train    97 "))));
  const std::string all = StatusText(status, EpochsShown::kAll);
  EXPECT_THAT(all, AllOf(HasSubstr("train    1      1,000"), HasSubstr("train    250    1,000"),
                         Not(HasSubstr("--all-epochs")), Not(HasSubstr("train    all"))));
}

TEST(TextOutputTest, AllEpochsAreShownWithTheirMetrics) {
  JobStatus status;
  status.datasets = {{.name = "train"}, {.name = "test"}};
  DatasetStatus& train = status.datasets[0];
  DatasetStatus& test = status.datasets[1];
  for (uint32_t e = 0; e < 9; ++e) {
    train.epochs.push_back({.epoch = e, .metrics = {{"loss", 0.5 + e}}});
    test.epochs.push_back({.epoch = e, .metrics = {{"auc", 0.75}, {"loss", std::nan("")}}});
  }
  test.epochs.back().metrics.clear();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("0.75")));
  EXPECT_THAT(StatusText(status, EpochsShown::kAll),
              AllOf(HasSubstr("\nDATASET  EPOCH  auc   loss\ntrain    1      -     0.5\n"),
                    HasSubstr("\ntrain    9      -     8.5\n"
                              "test     1      0.75  undefined\n"),
                    HasSubstr("\ntest     8      0.75  undefined\n"),
                    Not(HasSubstr("\ntest     9      -"))));
  const nlohmann::json json = ToJson(status);
  EXPECT_EQ(json["datasets"][0]["epochs"][2]["metrics"]["loss"], 2.5);
  EXPECT_EQ(json["datasets"][1]["epochs"][7]["metrics"]["auc"], 0.75);
}

TEST(TextOutputTest, MetricsAndWhatIsToBeSaidOfThem) {
  JobStatus status;
  EXPECT_THAT(StatusText(status), Not(HasSubstr("METRIC")));
  status.metric_trends = {{.dataset = "test",
                           .metric = "auc",
                           .epoch = 79,
                           .latest = 0.711,
                           .epoch_over = true,
                           .previous = 0.712,
                           .best = 0.816,
                           .best_epoch = 2,
                           .remark = "test auc is 0.711; its best was 0.816"},
                          {.dataset = "train", .metric = "mean", .latest = 3}};
  EXPECT_THAT(StatusText(status),
              HasSubstr("DATASET  METRIC  EPOCH     NEWEST  BEFORE  BEST\n"
                        "test     auc     80        0.711   0.712   0.816 in epoch 3\n"
                        "train    mean    1 so far  3       -       -\n"
                        "test auc is 0.711; its best was 0.816\n"));
}

TEST(TextOutputTest, WhatIsNotKnownOfATopicIsNotZero) {
  JobStatus status;
  StreamStatus& stream = status.datasets.emplace_back().stream.emplace();
  stream.topic = "clicks";
  TopicPartitionStatus& partition = stream.partitions.emplace_back();
  partition.committed = 300;
  EXPECT_THAT(StatusText(status), HasSubstr("topic clicks: the lag of the job is not known yet"));
  const std::string row = "clicks  0          0      300        0    -    -    -         -";
  EXPECT_THAT(StatusText(status), HasSubstr(row));
  partition.stable_end = 300;
  partition.lag = 0;
  stream.lag = 0;
  EXPECT_THAT(StatusText(status), Not(HasSubstr("not known")));
  stream.held_back = 75;
  EXPECT_THAT(StatusText(status), HasSubstr("topic clicks: 75 more offsets wait for open"));
}

TEST(TextOutputTest, OfManyTopicPartitionsThoseFurthestBehindAreShown) {
  JobStatus status;
  StreamStatus& stream = status.datasets.emplace_back().stream.emplace();
  stream.topic = "clicks";
  for (uint32_t p = 0; p < 1'000; ++p) {
    stream.partitions.push_back({.partition = p, .lag = p == 500 ? 70'707 : p});
  }
  const std::string text = StatusText(status);
  EXPECT_THAT(text, AllOf(HasSubstr("70,707"), HasSubstr("clicks  999"), HasSubstr("clicks  981"),
                          Not(HasSubstr("clicks  980")), Not(HasSubstr("clicks  0 "))));
  EXPECT_LT(text.find("70,707"), text.find("clicks  981")) << "in order";
  EXPECT_THAT(text, HasSubstr("topic clicks: the 20 of 1,000 partitions that are furthest behind"));
}

TEST(TextOutputTest, StatusNodesShardsEvents) {
  JobStatus status;
  status.name = "demo";
  status.state = JobState::kFailed;
  status.reason = "3 shards are FAILED";
  status.nodes.resize(2);
  NodeStatus& node = status.nodes[0];
  node.name = "ps-0";
  node.role = "ps";
  node.last_exit = "SIGKILL";
  node.server.emplace().partitions = 256;
  EXPECT_THAT(StatusText(status),
              AllOf(HasSubstr("demo: failed"), HasSubstr("3 shards are FAILED")));
  EXPECT_THAT(NodesText(status), AllOf(HasSubstr("ps-0"), HasSubstr("SIGKILL"),
                                       HasSubstr("0/256 partitions"), Not(HasSubstr("none"))));
  node.state = NodeState::kRunning;
  node.drain = DrainState::kDraining;
  node.drain_left = 2;
  node.server->counters.pulls = 3;
  node.server->counters.pushes = 1;
  node.server->counters.service_us = 400;
  status.nodes[1].role = "worker";
  WorkerTimes& times = status.nodes[1].worker.emplace().times;
  times.compute_us = 600;
  times.wait_pull_us = 200;
  EXPECT_THAT(NodesText(status), AllOf(HasSubstr("running, draining (2 left)"),
                                       HasSubstr("100 us a request"), HasSubstr("75 % computing")));
  PartitionList partitions{.total = 256, .partitions = {{.snapshot = 1}}};
  EXPECT_THAT(PartitionsText(partitions), HasSubstr("  there  ")) << "older than the master";
  partitions.partitions[0].snapshot_age_ms = 2'000;
  EXPECT_THAT(PartitionsText(partitions),
              AllOf(HasSubstr("0:02 ago"), HasSubstr("1 of 256 partitions")));
  const ShardPage shards{.total = 7, .shards = {{.reasons = {"bad record"}}}};
  EXPECT_THAT(ShardsText(shards), AllOf(HasSubstr("bad record"), HasSubstr("1 of 7 shards")));
  const ShardPage numbers{.total = 1, .shards = {{.first_record = 40, .records = 12}}};
  EXPECT_THAT(ShardsText(numbers), HasSubstr("12 records from 40 on"));
  MasterEvent event{.kind = "node-lost", .node = "ps-0"};
  EXPECT_THAT(EventText(event), HasSubstr("node-lost ps-0"));
  event.text = "a trainer's\n\x1b[31mwords";
  EXPECT_THAT(EventText(event), HasSubstr("  a trainer's\n     [31mwords\n"))
      << "a line of the log each";
  event.text = "one line\n";
  EXPECT_THAT(EventText(event), EndsWith("  one line\n"));
}

TEST(TextOutputTest, OnlyWhoWasHeardOfHasAHeartbeat) {
  JobStatus status;
  NodeStatus& node = status.nodes.emplace_back();
  node.name = "worker-0";
  node.pid = 7;
  node.heartbeat_age_ms = 317;
  for (const NodeState state : {NodeState::kStarting, NodeState::kRunning, NodeState::kLost}) {
    node.state = state;
    EXPECT_THAT(NodesText(status), HasSubstr("  7    317 ms     0 ")) << ToString(state);
  }
  for (const NodeState state : {NodeState::kExited, NodeState::kFinished}) {
    node.state = state;
    EXPECT_THAT(NodesText(status), HasSubstr("  7    -          0 ")) << ToString(state);
  }
  node.state = NodeState::kRunning;
  node.heartbeat_age_ms = 0;
  EXPECT_THAT(NodesText(status), HasSubstr("  7    0 ms       0 "));
  node.heartbeat_age_ms.reset();
  EXPECT_THAT(NodesText(status), HasSubstr("  7    -          0 ")) << "it has said nothing yet";
}

}  // namespace
}  // namespace muster
