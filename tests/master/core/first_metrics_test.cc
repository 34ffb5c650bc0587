#include "master/core/first_metrics.h"

#include <gtest/gtest.h>

#include "tests/master/core/core_fixture.h"

namespace muster {
namespace {

ShardId MetricShard(uint64_t index) {
  return {DatasetId(0), EpochIndex(0), ShardIndex(index)};
}

ShardMetrics Loss(double loss) {
  ShardMetrics metrics{.records = 10};
  metrics.means["loss"] = {loss, 10};
  return metrics;
}

TEST(FirstMetricsTest, ThoseOfTheFirstRunCountOnce) {
  FirstMetrics first;
  first.Keep(MetricShard(1), Loss(5));
  EXPECT_GT(first.bytes(), 0u);
  EXPECT_EQ(first.Take(MetricShard(2), Loss(4)), Loss(4)) << "another shard";
  EXPECT_EQ(first.Take(MetricShard(1), Loss(3)), Loss(5));
  EXPECT_EQ(first.bytes(), 0u);
  EXPECT_EQ(first.Take(MetricShard(1), Loss(3)), Loss(3)) << "they were taken";
}

TEST(FirstMetricsTest, AShardThatOnlyCountsItsRecordsIsNotKept) {
  FirstMetrics first;
  first.Keep(MetricShard(1), ShardMetrics{.records = 10});
  EXPECT_EQ(first.bytes(), 0u);
}

TEST(FirstMetricsTest, MemoryIsBounded) {
  FirstMetrics first(1'000);
  for (uint64_t i = 0; i < 100; ++i) first.Keep(MetricShard(i), Loss(5));
  EXPECT_LE(first.bytes(), 1'000u);
  EXPECT_EQ(first.Take(MetricShard(0), Loss(3)), Loss(5));
  EXPECT_EQ(first.Take(MetricShard(99), Loss(3)), Loss(3)) << "there was no room for it";
}

class ShardsAgainTest : public ::testing::Test, protected testing::CoreFixture {};

TEST_F(ShardsAgainTest, TheMetricsOfAShardThatRunsAgainAreThoseOfItsFirstRun) {
  Start();
  Register(5);
  const auto done_with_loss = [&](double loss) {
    const ShardGrant grant = Want(1).grants.at(0);
    EXPECT_EQ(grant.shard.index, ShardIndex(0));
    WorkerExchangeRequest request = Request();
    Hold({grant}, &request);
    DoneReport done{grant.shard, grant.token, grant.restore_epoch, {}, {}};
    done.metrics.records = 10;
    done.metrics.means["loss"] = {loss, 10};
    request.done = {done};
    Exchange(request);
  };
  const auto journaled = [&] { return journal.state().done.begin()->second.metrics.means; };
  done_with_loss(5);
  Register(6);
  ASSERT_TRUE(journal.state().done.empty());
  done_with_loss(3);
  EXPECT_EQ(journaled().at("loss").sum, 5);
  Register(7);
  done_with_loss(2);
  EXPECT_EQ(journaled().at("loss").sum, 5) << "however often";
}

}  // namespace
}  // namespace muster
