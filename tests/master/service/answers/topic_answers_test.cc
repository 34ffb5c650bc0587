#include "master/service/answers/topic_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/service/admin_answers.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;

/// A topic of two partitions, of which [10, 30) and [0, 20) are cut; [10, 20) is leased.
class TopicAnswersTest : public ::testing::Test {
 protected:
  TopicAnswersTest() {
    CoreOptions options;
    DatasetPlan plan{"clicks", DatasetMode::kTrain, 1, 0, 0, 5, nullptr};
    plan.stream = StreamPlan{.topic = "topic",
                             .cut = {.minibatch_size = 5, .minibatches_per_shard = 2},
                             .open_ranges_max = 100};
    options.datasets = {plan};
    core_ = std::make_unique<MasterCore>(options, DurableState{}, at_);
    core_->TakeLook(
        {.dataset = DatasetId(0),
         .cluster = "C",
         .partitions = {{TopicPartition(0), 10, 33, {}, 40}, {TopicPartition(1), 0, 20, {}, {}}}},
        at_);
    WorkerExchangeRequest request;
    request.worker = "worker-0";
    request.incarnation = 1;
    request.sequence = 1;
    request.want = 1;
    grants_ = core_->ExchangeWorker(request, at_).value().grants;
  }

  const StepTime at_{TimePoint(seconds(50)), seconds(500)};
  std::unique_ptr<MasterCore> core_;
  std::vector<ShardGrant> grants_;
};

TEST_F(TopicAnswersTest, StatusHasEveryTopicPartition) {
  const JobStatus status = StatusOf(*core_, "job", {at_.now, at_.wall + seconds(3)});
  const DatasetStatus& dataset = status.datasets[0];
  EXPECT_EQ(dataset.epochs[0].records_expected, 30u + 20u) << "up to the end, or so far";
  EXPECT_EQ(dataset.epochs[0].shards.total, 4u);
  const StreamStatus& stream = dataset.stream.value();
  EXPECT_EQ(stream.topic, "topic");
  EXPECT_EQ(stream.cluster, "C");
  EXPECT_TRUE(stream.open);
  EXPECT_EQ(stream.lag, 43u);
  EXPECT_EQ(stream.lag_ms, 3'000u);
  ASSERT_EQ(stream.partitions.size(), 2u);
  const TopicPartitionStatus& first = stream.partitions[0];
  EXPECT_EQ(first.begin, 10u);
  EXPECT_EQ(first.cut, 30u);
  EXPECT_EQ(first.committed, 10u);
  EXPECT_EQ(first.end, 40u);
  EXPECT_EQ(first.log_begin, 10u);
  EXPECT_EQ(first.stable_end, 33u);
  EXPECT_EQ(first.lag, 23u);
  EXPECT_EQ(first.open_ranges, 2u);
  EXPECT_FALSE(stream.partitions[1].end.has_value());
}

TEST_F(TopicAnswersTest, AShardOfSeveralRangesNamesThem) {
  const auto sources = [&] {
    std::vector<std::string> found;
    for (const auto& [shard, cut] : core_->ledger().streams().ShardsOf(DatasetId(0))) {
      ShardStatus status;
      DescribeRange(core_->ledger(), shard, &status);
      found.push_back(status.source);
    }
    return found;
  };
  EXPECT_THAT(sources(), Each(AnyOf("topic[0]", "topic[1]")));
  const StepTime later{at_.now + seconds(60), at_.wall + seconds(60)};
  const StreamLook look{
      .dataset = DatasetId(0),
      .cluster = "C",
      .partitions = {{TopicPartition(0), 10, 33, {}, 40}, {TopicPartition(1), 0, 22, {}, {}}}};
  core_->TakeLook(look, at_);
  core_->TakeLook(look, later);
  WorkerExchangeRequest request;
  request.worker = "worker-1";
  request.incarnation = 1;
  request.sequence = 1;
  request.want = 100;
  EXPECT_THAT(core_->ExchangeWorker(request, later).status(), IsOk());
  EXPECT_THAT(sources(), Contains("topic[0] [30, 33), topic[1] [20, 22)"));
}

TEST_F(TopicAnswersTest, WithoutAClockThereIsNoLagInTime) {
  core_->TakeLook({.dataset = DatasetId(0),
                   .error = "no broker answers",
                   .dead_letter_trouble = "topic 'dead': unknown"},
                  at_);
  StreamStatus stream = StreamOf(*core_, DatasetId(0), StepTime{});
  EXPECT_EQ(stream.trouble, "no broker answers");
  EXPECT_EQ(stream.dead_letter_trouble, "topic 'dead': unknown");
  EXPECT_EQ(stream.lag_ms, 0u);
  EXPECT_EQ(stream.lag, 43u);
}

TEST_F(TopicAnswersTest, WhatIsNotKnownIsNotZero) {
  CoreOptions options;
  options.datasets = core_->ledger().plan();
  const MasterCore unseen(options, DurableState{}, at_);
  StreamStatus stream = StreamOf(unseen, DatasetId(0), at_);
  EXPECT_FALSE(stream.lag.has_value());
  EXPECT_FALSE(stream.lag_ms.has_value());
  EXPECT_FALSE(stream.held_back.has_value());
  stream = StreamOf(*core_, DatasetId(0), at_);
  EXPECT_TRUE(stream.lag.has_value());
  EXPECT_TRUE(stream.partitions[1].lag_ms.has_value());
}

TEST_F(TopicAnswersTest, WhatOpenTransactionsHoldBackIsShown) {
  core_->TakeLook({.dataset = DatasetId(0),
                   .partitions = {{TopicPartition(0), 10, 33, {}, 40, 99},
                                  {TopicPartition(1), 0, 20, {}, {}, 95}}},
                  at_);
  StreamStatus stream = StreamOf(*core_, DatasetId(0), at_);
  EXPECT_EQ(stream.partitions[0].held_back, 7u) << "up to the dataset's end";
  EXPECT_EQ(stream.held_back, 7u + 75u);
}

TEST_F(TopicAnswersTest, AShardIsShownByItsOffsets) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const ShardPage response,
      ShardsOf(*core_, at_.now, [](const ShardId&) { return ShardWork{}; }, {}));
  ASSERT_EQ(response.shards.size(), 1u);
  EXPECT_EQ(response.shards[0].source, "topic[0]");
  EXPECT_EQ(response.shards[0].first_record, 10u);
  EXPECT_EQ(response.shards[0].records, 10u);
  EXPECT_EQ(response.shards[0].first_line, 0u);
}

TEST_F(TopicAnswersTest, DelaysOfTheLastMinuteAndOfAll) {
  const auto hear = [&](uint64_t incarnation, uint64_t sequence, std::vector<int> delays,
                        TimePoint now) {
    WorkerExchangeRequest request;
    request.worker = "worker-" + std::to_string(incarnation);
    request.incarnation = incarnation;
    request.sequence = sequence;
    request.delays = {{DatasetId(0), {}}, {DatasetId(9), {}}};  // of which one is none of the job's
    for (const int ms : delays) request.delays[0].delays.Add(milliseconds(ms));
    core_->ExchangeWorker(request, {now, at_.wall}).value();
  };
  const auto told = [&](TimePoint now) {
    return StreamOf(*core_, DatasetId(0), {now, at_.wall}).delay.value();
  };
  // A process that is older than this master's run.
  hear(7, 10, {100, 100, 9'000}, at_.now);
  EXPECT_EQ(told(at_.now).records, 0u);
  EXPECT_EQ(told(at_.now).total_records, 3u);
  EXPECT_EQ(told(at_.now).total_p50_ms, 112u);
  hear(7, 11, {100, 100, 9'000, 50, 60}, at_.now + seconds(1));
  hear(7, 11, {1, 2, 3, 4, 5, 6, 7, 8}, at_.now + seconds(1));  // overtaken: says nothing
  DelayStatus delay = told(at_.now + seconds(1));
  EXPECT_EQ(delay.records, 2u);
  EXPECT_EQ(delay.p99_ms, 64u);
  EXPECT_EQ(delay.total_records, 5u);
  EXPECT_EQ(delay.total_ms, 9'310u);
  ASSERT_EQ(delay.buckets.size(), 19u);
  EXPECT_EQ(delay.buckets[3], 0u);   // below 32 ms
  EXPECT_EQ(delay.buckets[4], 2u);   // below 64 ms
  EXPECT_EQ(delay.buckets[18], 5u);  // below 2^20 ms
  EXPECT_EQ(told(at_.now + seconds(40)).records, 2u);
  EXPECT_EQ(told(at_.now + seconds(80)).records, 0u);
  EXPECT_EQ(told(at_.now + seconds(80)).total_records, 5u);
}

}  // namespace
}  // namespace muster
