#include "master/service/stream_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/service/job_view.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsOk;

/// A topic of two partitions, of which [10, 30) and [0, 20) are cut; [10, 20) is leased.
class StreamViewTest : public ::testing::Test {
 protected:
  StreamViewTest() {
    CoreOptions options;
    DatasetPlan plan{"clicks", DatasetMode::kTrain, 1, 0, 0, 5, nullptr};
    plan.stream = StreamPlan{.topic = "topic",
                             .cut = {.minibatch_size = 5, .minibatches_per_shard = 2},
                             .open_ranges_max = 100};
    options.datasets = {plan};
    core_ = std::make_unique<MasterCore>(options, DurableState{}, at_);
    core_->SeeStream(
        {.dataset = DatasetId(0),
         .cluster = "C",
         .sights = {{TopicPartition(0), 10, 33, {}, 40}, {TopicPartition(1), 0, 20, {}, {}}}},
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

TEST_F(StreamViewTest, StatusHasEveryTopicPartition) {
  v1::JobStatus status;
  FillStatus(*core_, "job", {at_.now, at_.wall + seconds(3)}, &status);
  const v1::DatasetStatus& dataset = status.datasets(0);
  EXPECT_EQ(dataset.epochs(0).records_expected(), 23u + 20u);
  EXPECT_EQ(dataset.epochs(0).shards(), 4u);
  const v1::StreamStatus& stream = dataset.stream();
  EXPECT_EQ(stream.topic(), "topic");
  EXPECT_EQ(stream.cluster(), "C");
  EXPECT_TRUE(stream.open());
  EXPECT_EQ(stream.lag(), 43u);
  EXPECT_EQ(stream.lag_ms(), 3'000u);
  ASSERT_EQ(stream.partitions_size(), 2);
  const v1::TopicPartitionStatus& first = stream.partitions(0);
  EXPECT_EQ(first.begin(), 10u);
  EXPECT_EQ(first.cut(), 30u);
  EXPECT_EQ(first.committed(), 10u);
  EXPECT_EQ(first.end(), 40u);
  EXPECT_EQ(first.log_begin(), 10u);
  EXPECT_EQ(first.stable_end(), 33u);
  EXPECT_EQ(first.lag(), 23u);
  EXPECT_EQ(first.open_ranges(), 2u);
  EXPECT_FALSE(stream.partitions(1).has_end());
}

TEST_F(StreamViewTest, WithoutAClockThereIsNoLagInTime) {
  v1::StreamStatus stream;
  core_->SeeStream({.dataset = DatasetId(0), .error = "no broker answers"}, at_);
  FillStream(*core_, DatasetId(0), WallTime(0), &stream);
  EXPECT_EQ(stream.trouble(), "no broker answers");
  EXPECT_EQ(stream.lag_ms(), 0u);
  EXPECT_EQ(stream.lag(), 43u);
}

TEST_F(StreamViewTest, AShardIsShownByItsOffsets) {
  v1::ListShardsResponse response;
  v1::ListShardsRequest request;
  ASSERT_THAT(FillShards(
                  *core_, at_.now, [](const ShardId&) { return ShardWork{}; }, request, &response),
              IsOk());
  ASSERT_EQ(response.shards_size(), 1);
  EXPECT_EQ(response.shards(0).source(), "topic[0]");
  EXPECT_EQ(response.shards(0).first_record(), 10u);
  EXPECT_EQ(response.shards(0).records(), 10u);
  EXPECT_EQ(response.shards(0).first_line(), 0u);
}

}  // namespace
}  // namespace muster
