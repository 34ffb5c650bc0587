#include "cli/run/summary.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SummaryInput SomeInput() {
  v1::JobStatus status;
  for (uint32_t mode : {0u, 1u}) {
    v1::DatasetStatus* dataset = status.add_datasets();
    dataset->set_name(mode == 0 ? "train" : "test");
    dataset->set_mode(mode);
    for (uint32_t e = 0; e < 2; ++e) {
      v1::EpochStatus* epoch = dataset->add_epochs();
      epoch->set_epoch(e);
      epoch->set_records_expected(100);
      epoch->set_records_committed(100);
      v1::MetricValue* metric = epoch->add_metrics();
      metric->set_name("logloss");
      metric->set_value(0.5 - 0.1 * e);
    }
  }
  for (int i = 0; i < 2; ++i) {
    v1::WorkerTimes* times = status.add_nodes()->mutable_times();
    times->set_total_us(1'000);
    times->set_wait_pull_us(i == 0 ? 100 : 300);
  }
  status.mutable_counters()->set_redelivered_minibatches(12);
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
  EXPECT_EQ(json["state"], "succeeded");
  EXPECT_EQ(json["datasets"][1]["name"], "test");
  EXPECT_EQ(json["datasets"][1]["epochs"][1]["expected"], 100);
  EXPECT_EQ(json["datasets"][1]["epochs"][1]["committed"], 100);
  EXPECT_EQ(json["restarts"],
            (nlohmann::json{{"master", 1}, {"scaler", 4}, {"ps", 2}, {"worker", 3}}));
  EXPECT_EQ(json["redelivered_minibatches"], 12);
  EXPECT_DOUBLE_EQ(json["seconds"].get<double>(), 12.5);
  EXPECT_DOUBLE_EQ(json["records_per_second"].get<double>(), 50);
  EXPECT_DOUBLE_EQ(json["waiting"]["pulls"].get<double>(), 0.2);
  EXPECT_NEAR(json["metrics"]["test"]["logloss"].get<double>(), 0.4, 1e-9) << "of the last epoch";
}

TEST(SummaryTest, ShowsARejectedRecord) {
  SummaryInput input = SomeInput();
  v1::EpochStatus* epoch = input.status->mutable_datasets(0)->mutable_epochs(0);
  epoch->set_rejected_records(3);
  epoch->add_reject_samples("train.csv:17: malformed");
  EXPECT_THAT(SummaryText(input), HasSubstr("3 rejected records (one: train.csv:17: malformed)"));
  const nlohmann::json json = SummaryToJson(input);
  EXPECT_EQ(json["datasets"][0]["epochs"][0]["reject_samples"][0], "train.csv:17: malformed");
}

TEST(SummaryTest, LagAndDelayOfATopic) {
  SummaryInput input = SomeInput();
  v1::StreamStatus* stream = input.status->mutable_datasets(0)->mutable_stream();
  stream->set_topic("clicks");
  stream->set_lag(1'200);
  EXPECT_THAT(SummaryText(input), HasSubstr("topic clicks: 1,200 offsets behind\n"));
  EXPECT_TRUE(SummaryToJson(input)["datasets"][0]["stream"]["delay"].is_null());
  stream->set_trouble("no broker answers");
  stream->set_held_back(75);
  EXPECT_THAT(SummaryText(input), HasSubstr("topic clicks: 1,200 offsets behind when it was last "
                                            "seen, 75 more offsets wait for open transactions\n"));
  v1::DelayStatus* delay = stream->mutable_delay();
  delay->set_p50_ms(7);
  delay->set_total_records(3);
  delay->set_total_p50_ms(320);
  delay->set_total_p99_ms(1'280);
  EXPECT_THAT(SummaryText(input),
              HasSubstr("from a record's timestamp to the weights 0.32 s (p50), 1.28 s (p99)"));
  const nlohmann::json json = SummaryToJson(input)["datasets"][0]["stream"]["delay"];
  EXPECT_EQ(json["p50_ms"], 7);
  EXPECT_EQ(json["total"]["p99_ms"], 1'280);
}

TEST(SummaryTest, WhatIsNotCommittedHasNoDelay) {
  SummaryInput input = SomeInput();
  v1::DatasetStatus* dataset = input.status->mutable_datasets(0);
  for (v1::EpochStatus& epoch : *dataset->mutable_epochs()) epoch.set_records_committed(0);
  dataset->mutable_stream()->set_topic("clicks");
  dataset->mutable_stream()->mutable_delay()->set_total_p50_ms(81'920);
  dataset->mutable_stream()->set_dead_letter_trouble("topic 'dead': unknown");
  EXPECT_THAT(SummaryText(input), Not(HasSubstr("81.92")));
  EXPECT_THAT(SummaryText(input), HasSubstr("cannot be written: topic 'dead': unknown\n"));
}

TEST(SummaryTest, ATopicThatWasNeverSeenIsNotZeroOffsetsBehind) {
  SummaryInput input = SomeInput();
  v1::StreamStatus* stream = input.status->mutable_datasets(0)->mutable_stream();
  stream->set_topic("clicks");
  stream->add_partitions();
  EXPECT_THAT(SummaryText(input), HasSubstr("topic clicks: nobody knows how far behind\n"));
  const nlohmann::json json = SummaryToJson(input)["datasets"][0]["stream"];
  for (const char* name : {"lag", "lag_ms", "held_back"}) {
    EXPECT_TRUE(json.at(name).is_null()) << name;
    EXPECT_TRUE(json["partitions"][0].at(name).is_null()) << name;
  }
}

TEST(SummaryTest, OneIsNotMany) {
  SummaryInput input = SomeInput();
  input.status->mutable_counters()->set_redelivered_minibatches(1);
  input.status->mutable_datasets(0)->mutable_epochs(0)->set_shards_failed(1);
  EXPECT_THAT(SummaryText(input), AllOf(HasSubstr("; 1 minibatch delivered again"),
                                        HasSubstr("committed, 1 FAILED shard, ")));
}

TEST(SummaryTest, SaysThatADrainedJobCanGoOn) {
  SummaryInput input = SomeInput();
  EXPECT_THAT(SummaryText(input), Not(HasSubstr("goes on")));
  input.outcome.state = RunOutcome::State::kDrained;
  EXPECT_THAT(SummaryText(input), HasSubstr("not finished: the same command goes on"));
  input.status->set_reason("ps-0: 1 partition waits: 'p/1-base.sst' cannot be read: no such file");
  EXPECT_THAT(SummaryText(input),
              AllOf(HasSubstr("not finished: ps-0: 1 partition waits: 'p/1-base.sst'"),
                    HasSubstr("once that is over, the same command goes on")));
}

TEST(SummaryTest, Text) {
  EXPECT_THAT(SummaryText(SomeInput()),
              AllOf(HasSubstr("flights: succeeded after 0:12"), HasSubstr("logloss 0.4000"),
                    HasSubstr("100 of 100 records committed"), HasSubstr("20.0 % for pulls"),
                    HasSubstr("master 1, scaler 4, ps 2, workers 3"), HasSubstr("12 minibatches")));
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
