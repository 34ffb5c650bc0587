#include "master/core/epochs/epoch_totals.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/master/core/core_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

constexpr DatasetId kTrain(0);

/// What the weights had seen too early.
struct Later {
  uint64_t again = 0;
  uint64_t records = 0;
};

/// Epochs of two shards of ten records. They become DONE and COMMITTED at once.
class EpochTotalsTest : public ::testing::Test {
 protected:
  EpochTotalsTest() { MUSTER_CHECK(plan_[0].records == 20); }
  void RunShard(uint32_t epoch, uint64_t index, const ShardMetrics& metrics) {
    const ShardId shard{kTrain, EpochIndex(epoch), ShardIndex(index)};
    queue_.Take(shard);
    queue_.SetDone({DoneSeq(++seq_), shard, LeaseToken(MasterIncarnation(1), seq_)});
    totals_.AddDone(shard, 10);
    queue_.CommitUpTo(DoneSeq(seq_), 1);
    totals_.Commit(shard, metrics, 10);
  }
  void RunEpoch(uint32_t epoch, double loss, Later later = {}) {
    ShardMetrics metrics{.records = 10};
    metrics.rejected_records = 1;
    metrics.minibatches_again = later.again;
    metrics.records_later = later.records;
    metrics.means["loss"] = {10 * loss, 10};
    // Nobody knows which of them is better.
    metrics.means["temperature"] = {epoch == 1 ? -10.0 : 10.0, 10};
    for (uint64_t index = 0; index < 2; ++index) RunShard(epoch, index, metrics);
  }
  std::vector<uint32_t> Known() const {
    std::vector<uint32_t> epochs;
    for (const EpochIndex epoch : totals_.KnownEpochs(kTrain)) epochs.push_back(epoch.value());
    return epochs;
  }

  std::vector<DatasetPlan> plan_ = {testing::PlanFor("train", DatasetMode::kTrain, 100, 2)};
  ShardQueue queue_{{{.epochs = 100, .shards = 2}}};
  EpochTotals totals_{&plan_, &queue_, {.metric_names = 10}};
  uint64_t seq_ = 0;
};

TEST_F(EpochTotalsTest, OfAnEpochThatWasThinnedOutAllRecordsAreKnownToBeCommitted) {
  for (uint32_t epoch = 0; epoch < 9; ++epoch) RunEpoch(epoch, 1);
  totals_.ThinOut(9, {});
  EXPECT_EQ(totals_.ThinnedEpochs(kTrain), 0u) << "these are not too many";
  totals_.ThinOut(8, {EpochIndex(2)});
  EXPECT_THAT(Known(), ElementsAre(0, 2, 4, 5, 6, 7, 8));
  EXPECT_EQ(totals_.ThinnedEpochs(kTrain), 2u);
  EXPECT_EQ(totals_.RecordsCommitted(kTrain, EpochIndex(1)), 20u);
  EXPECT_EQ(totals_.RecordsDone(kTrain, EpochIndex(1)), 20u);
  EXPECT_EQ(totals_.Metrics(kTrain, EpochIndex(1)), nullptr);
  EXPECT_EQ(totals_.RecordsDone(kTrain, EpochIndex(9)), 0u) << "it has not begun";
}

TEST_F(EpochTotalsTest, TheBestOfAMetricStaysUnlessItIsNoneToCompare) {
  RunEpoch(0, 1);
  RunEpoch(1, 1);
  RunEpoch(2, 0.2, {.records = 1});
  RunEpoch(3, 0.1, {.again = 1});
  RunEpoch(4, 1);
  RunEpoch(5, 0.5);
  RunEpoch(6, -std::numeric_limits<double>::infinity());
  for (uint32_t epoch = 7; epoch < 17; ++epoch) RunEpoch(epoch, 1);
  totals_.ThinOut(16, {});
  EXPECT_THAT(Known(), ElementsAre(0, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16));
}

TEST_F(EpochTotalsTest, WhatIsNotCommittedIsNotThinnedOut) {
  for (uint32_t epoch = 0; epoch < 9; ++epoch) {
    if (epoch == 1) {
      RunShard(1, 0, {});
    } else {
      RunEpoch(epoch, 1);
    }
  }
  totals_.ThinOut(8, {});
  EXPECT_THAT(Known(), ElementsAre(0, 1, 4, 5, 6, 7, 8));
}

TEST_F(EpochTotalsTest, TheJournalGetsBothInOneBatchAndGivesBothBack) {
  for (uint32_t epoch = 0; epoch < 9; ++epoch) RunEpoch(epoch, 1);
  totals_.ThinOut(8, {});
  std::vector<Mutation> mutations;
  totals_.Collect(&mutations);
  DurableState state;
  for (const Mutation& mutation : mutations) Apply(mutation, &state);
  EXPECT_EQ(state.epochs.size(), 6u);
  EXPECT_EQ(state.whole_epochs.at(kTrain).epochs.count(), 9u);
  EXPECT_EQ(state.whole_epochs.at(kTrain).rejected_records, 6u);
  EpochTotals restored(&plan_, &queue_, {.metric_names = 10});
  EXPECT_EQ(restored.Restore(state), 18u) << "rejected records";
  EXPECT_EQ(restored.KnownEpochs(kTrain), totals_.KnownEpochs(kTrain));
  EXPECT_EQ(restored.ThinnedEpochs(kTrain), 3u);
  mutations.clear();
  totals_.Collect(&mutations);
  restored.Collect(&mutations);
  EXPECT_TRUE(mutations.empty()) << "nothing has changed since";
  restored.ThinOut(4, {});
  restored.Collect(&mutations);
  for (const Mutation& mutation : mutations) Apply(mutation, &state);
  EXPECT_EQ(state.epochs.size(), 3u);
  EXPECT_EQ(state.whole_epochs.at(kTrain).rejected_records, 12u);
}

TEST_F(EpochTotalsTest, MetricsThatSomebodyReadsDoNotChange) {
  RunShard(0, 0, {.records = 10});
  const auto before = totals_.Metrics(kTrain, EpochIndex(0));
  RunShard(0, 1, {.records = 10});
  EXPECT_EQ(before->records, 10u);
  EXPECT_EQ(totals_.Metrics(kTrain, EpochIndex(0))->records, 20u);
}

TEST_F(EpochTotalsTest, EventsAboutTooManyMetricsAreLimited) {
  ShardMetrics many{.records = 10};
  for (int i = 0; i < 11; ++i) many.means["metric-" + std::to_string(i)] = {1, 1};
  for (uint32_t epoch = 0; epoch < 3; ++epoch) RunShard(epoch, 0, many);
  EXPECT_EQ(totals_.metrics_dropped().size(), 3u);
  EXPECT_EQ(totals_.Metrics(kTrain, EpochIndex(0))->means.size(), 10u);
}

}  // namespace
}  // namespace muster
