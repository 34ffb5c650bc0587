#include "cli/run/summary.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SummaryInput SomeInput() {
  JobStatus status;
  for (const auto& [name, mode] : {std::pair("train", "train"), std::pair("test", "evaluate")}) {
    DatasetStatus& dataset = status.datasets.emplace_back();
    dataset.name = name;
    dataset.mode = mode;
    for (uint32_t epoch : {0u, 1u}) {
      dataset.epochs.push_back({.epoch = epoch,
                                .records_expected = 100,
                                .records_committed = 100,
                                .metrics = {{"logloss", 0.5 - 0.1 * epoch}}});
    }
  }
  for (uint64_t wait_us : {100, 300}) {
    WorkerTimes& times = status.nodes.emplace_back().worker.emplace().times;
    times.total_us = 1'000;
    times.wait_pull_us = wait_us;
  }
  status.counters.redelivered_minibatches = 12;
  return {.job = "flights",
          .outcome = {RunOutcome::State::kSucceeded, ""},
          .status = status,
          .master_restarts = 1,
          .scaler_restarts = 4,
          .server_restarts = 2,
          .worker_restarts = 3,
          .elapsed = milliseconds(12'500),
          .trained_records = 200,
          .training = milliseconds(4'000)};
}

TEST(SummaryTest, Json) {
  const nlohmann::json json = SummaryToJson(SomeInput());
  EXPECT_EQ(json["name"], "flights");
  EXPECT_EQ(json["state"], "succeeded");
  EXPECT_EQ(json["datasets"][1]["name"], "test");
  EXPECT_EQ(json["datasets"][1]["epochs"][1]["records_expected"], 100);
  EXPECT_EQ(json["datasets"][1]["epochs"][1]["records_committed"], 100);
  EXPECT_EQ(json["restarts"],
            (nlohmann::json{{"master", 1}, {"scaler", 4}, {"ps", 2}, {"worker", 3}}));
  EXPECT_EQ(json["counters"]["redelivered_minibatches"], 12);
  EXPECT_DOUBLE_EQ(json["seconds"].get<double>(), 12.5);
  EXPECT_DOUBLE_EQ(json["records_per_second"].get<double>(), 50);
  EXPECT_DOUBLE_EQ(json["waiting"]["pulls"].get<double>(), 0.2);
  EXPECT_NEAR(json["metrics"]["test"]["logloss"].get<double>(), 0.4, 1e-9) << "of the last epoch";
}

TEST(SummaryTest, ALongJobShowsTheNewestEpochsAndHowMetricsWent) {
  SummaryInput input = SomeInput();
  DatasetStatus& test = input.status->datasets[1];
  for (uint32_t epoch = 2; epoch < 250; ++epoch) {
    test.epochs.push_back({.epoch = epoch,
                           .records_expected = 100,
                           .records_done = epoch < 100 ? 100u : 0u,
                           .records_committed = epoch < 100 ? 100u : 0u,
                           .metrics = {{"logloss", 0.4}}});
  }
  input.status->metric_trends = {{.dataset = "test",
                                  .metric = "logloss",
                                  .epoch = 99,
                                  .latest = 0.4,
                                  .epoch_over = true,
                                  .best = 0.3,
                                  .best_epoch = 1,
                                  .remark = "test logloss is 0.4; its best was 0.3"}};
  EXPECT_THAT(SummaryText(input),
              AllOf(HasSubstr("test         epochs 1-97: 9,700 of 9,700 records committed\n"),
                    HasSubstr("test         epoch 98: 100 of 100 records committed, logloss"),
                    HasSubstr("test         epoch 100: 100 of 100"),
                    HasSubstr("test         epochs 101-250: 0 of 15,000 records committed\n"),
                    HasSubstr("  epoch 100: logloss 0.4 (best 0.3 in epoch 2)\n"),
                    HasSubstr("\n  test logloss is 0.4; its best was 0.3\n"),
                    HasSubstr("muster status --all-epochs"), Not(HasSubstr("epoch 101:"))));
  EXPECT_EQ(SummaryToJson(input)["metric_trends"][0]["best_epoch"], 1);
  EXPECT_THAT(SummaryText(SomeInput()), Not(HasSubstr("--all-epochs")));
}

TEST(SummaryTest, ShowsARejectedRecord) {
  SummaryInput input = SomeInput();
  EpochStatus& epoch = input.status->datasets[0].epochs[0];
  epoch.rejected_records = 3;
  epoch.reject_samples = {"train.csv:17: malformed"};
  EXPECT_THAT(SummaryText(input),
              HasSubstr("3 rejected records (for example train.csv:17: malformed)"));
  const nlohmann::json json = SummaryToJson(input);
  EXPECT_EQ(json["datasets"][0]["epochs"][0]["reject_samples"][0], "train.csv:17: malformed");
}

TEST(SummaryTest, LagAndDelayOfATopic) {
  SummaryInput input = SomeInput();
  StreamStatus& stream = input.status->datasets[0].stream.emplace();
  stream.topic = "clicks";
  stream.lag = 1'200;
  EXPECT_THAT(SummaryText(input), HasSubstr("topic clicks: 1,200 offsets behind\n"));
  EXPECT_TRUE(SummaryToJson(input)["datasets"][0]["stream"]["delay"].is_null());
  stream.trouble = "no broker answers";
  stream.held_back = 75;
  EXPECT_THAT(SummaryText(input), HasSubstr("topic clicks: 1,200 offsets behind when it was last "
                                            "seen, 75 more offsets wait for open transactions\n"));
  stream.delay = {.p50_ms = 7, .total_records = 3, .total_p50_ms = 320, .total_p99_ms = 1'280};
  EXPECT_THAT(SummaryText(input),
              HasSubstr("from a record's timestamp to the weights 0.32 s (p50), 1.28 s (p99)"));
  const nlohmann::json json = SummaryToJson(input)["datasets"][0]["stream"]["delay"];
  EXPECT_EQ(json["p50_ms"], 7);
  EXPECT_EQ(json["total_p99_ms"], 1'280);
}

TEST(SummaryTest, WhatIsNotCommittedHasNoDelay) {
  SummaryInput input = SomeInput();
  DatasetStatus& dataset = input.status->datasets[0];
  for (EpochStatus& epoch : dataset.epochs) epoch.records_committed = 0;
  dataset.stream = {.topic = "clicks",
                    .dead_letter_trouble = "topic 'dead': unknown",
                    .delay = DelayStatus{.total_p50_ms = 81'920}};
  EXPECT_THAT(SummaryText(input), Not(HasSubstr("81.92")));
  EXPECT_THAT(SummaryText(input), HasSubstr("cannot be written: topic 'dead': unknown\n"));
}

TEST(SummaryTest, ATopicThatWasNeverSeenIsNotZeroOffsetsBehind) {
  SummaryInput input = SomeInput();
  StreamStatus& stream = input.status->datasets[0].stream.emplace();
  stream.topic = "clicks";
  stream.partitions.emplace_back();
  EXPECT_THAT(SummaryText(input), HasSubstr("topic clicks: its lag is not known\n"));
  const nlohmann::json json = SummaryToJson(input)["datasets"][0]["stream"];
  for (const char* name : {"lag", "lag_ms", "held_back"}) {
    EXPECT_TRUE(json.at(name).is_null()) << name;
    EXPECT_TRUE(json["partitions"][0].at(name).is_null()) << name;
  }
}

TEST(SummaryTest, OneIsNotMany) {
  SummaryInput input = SomeInput();
  input.status->counters.redelivered_minibatches = 1;
  input.status->datasets[0].epochs[0].shards.failed = 1;
  EXPECT_THAT(SummaryText(input), AllOf(HasSubstr("; 1 minibatch delivered again"),
                                        HasSubstr("committed, 1 FAILED shard, ")));
}

TEST(SummaryTest, SaysThatADrainedJobCanGoOn) {
  SummaryInput input = SomeInput();
  EXPECT_THAT(SummaryText(input), Not(HasSubstr("continues")));
  input.outcome.state = RunOutcome::State::kDrained;
  EXPECT_THAT(SummaryText(input), HasSubstr("not finished: the same command continues"));
  input.status->reason = "ps-0: 1 partition waits: 'p/1-base.sst' cannot be read: no such file";
  EXPECT_THAT(SummaryText(input),
              AllOf(HasSubstr("not finished: ps-0: 1 partition waits: 'p/1-base.sst'"),
                    HasSubstr("when that is fixed, the same command continues")));
}

TEST(SummaryTest, Text) {
  EXPECT_THAT(SummaryText(SomeInput()),
              AllOf(HasSubstr("flights: succeeded after 0:12"), HasSubstr("logloss 0.4000"),
                    HasSubstr("100 of 100 records committed"), HasSubstr("20.0 % for pulls"),
                    HasSubstr("master 1, scaler 4, ps 2, workers 3"), HasSubstr("12 minibatches")));
}

TEST(SummaryTest, ARunOfACompleteJobSaysSo) {
  SummaryInput input = SomeInput();
  EXPECT_THAT(SummaryText(input), Not(HasSubstr("trained no records")));
  input.trained_records = 0;
  EXPECT_THAT(SummaryText(input),
              AllOf(HasSubstr("trained no records: all of them"), Not(HasSubstr("records/s"))));
  input.outcome.state = RunOutcome::State::kFailed;
  EXPECT_THAT(SummaryText(input), HasSubstr("0 records/s"));
}

TEST(SummaryTest, MasterThatNeverAnswered) {
  const SummaryInput input{
      .job = "x", .outcome = {RunOutcome::State::kBadInput, "no data"}, .status = std::nullopt};
  const nlohmann::json json = SummaryToJson(input);
  EXPECT_EQ(json["state"], "failed");
  EXPECT_EQ(json["reason"], "no data");
  EXPECT_TRUE(json["datasets"].empty());
  EXPECT_THAT(SummaryText(input), HasSubstr("no data"));
}

}  // namespace
}  // namespace muster
