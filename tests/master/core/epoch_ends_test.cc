#include "master/core/epoch_ends.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/master/core/core_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Epochs of two shards, each judged by one, which reports the loss of `losses`.
class EpochEndsTest : public ::testing::Test, protected testing::CoreFixture {
 protected:
  void SetUp() override {
    options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 5, 2),
                        testing::PlanFor("test", DatasetMode::kEvaluate, 1, 1)};
    options.snapshot_interval = std::chrono::seconds(60);
    options.leases.grace_period = std::chrono::milliseconds(0);
  }
  static DecidingMetric Loss() { return {DatasetId(1), "loss", Better::kLower}; }
  void KeepBest() { options.epoch_ends.keep_best = Loss(); }
  void StartServed() {
    Start();
    Register(++nonce_);
  }
  void Report(const ShardGrant& grant, double loss) {
    WorkerExchangeRequest request = Request();
    Hold({grant}, &request);
    DoneReport done{grant.shard, grant.token, grant.restore_epoch, {}, {}};
    done.metrics.records = 10;
    done.metrics.means["loss"] = {loss, 1};
    request.done.push_back(done);
    Exchange(request);
  }
  /// Trains and judges an epoch; nothing of it is COMMITTED yet.
  void RunEpoch(double loss) {
    const auto train = Want(5).grants;
    ASSERT_THAT(train, SizeIs(2));
    Done(train);
    const auto judge = Want(5).grants;
    ASSERT_THAT(judge, SizeIs(1));
    Report(judge[0], loss);
  }
  void RunEpochs(const std::vector<double>& losses) {
    for (const double loss : losses) {
      RunEpoch(loss);
      Snapshot();
    }
  }
  std::vector<uint32_t> Kept() const {
    std::vector<uint32_t> epochs;
    for (const auto& [epoch, manifests] : core->kept().epochs()) epochs.push_back(epoch.value());
    return epochs;
  }
  std::vector<std::string> Files(uint32_t epoch) const {
    std::vector<std::string> names;
    for (const Manifest& manifest : core->kept().epochs().at(EpochIndex(epoch))) {
      for (const SnapshotFile& file : manifest.files) names.push_back(file.name);
    }
    return names;
  }

 private:
  uint64_t nonce_ = 10;
};

TEST_F(EpochEndsTest, AnEpochBeginsWhenTheOneBeforeIsCommittedWithItsEvaluation) {
  KeepBest();
  StartServed();
  RunEpoch(1);
  EXPECT_THAT(Want(5).grants, IsEmpty()) << "a restore could undo what was judged";
  EXPECT_EQ(core->epoch_ends().ended(), 0u);
  Snapshot();
  EXPECT_EQ(core->epoch_ends().ended(), 1u);
  const auto next = Want(5).grants;
  ASSERT_THAT(next, SizeIs(2));
  EXPECT_EQ(next[0].shard.epoch, EpochIndex(1));
}

TEST_F(EpochEndsTest, AnEpochEndsWithoutThePredictionsWhichComeAfterAll) {
  KeepBest();
  DatasetPlan predict = options.datasets[1];
  predict.name = "new";
  predict.mode = DatasetMode::kPredict;
  options.datasets.push_back(predict);
  StartServed();
  RunEpoch(1);
  Snapshot();
  EXPECT_EQ(core->epoch_ends().ended(), 1u);
  const auto next = Want(5).grants;
  ASSERT_THAT(next, SizeIs(2));
  EXPECT_EQ(next[0].shard.epoch, EpochIndex(1));
}

TEST_F(EpochEndsTest, OtherJobsWaitForTheEvaluationOnly) {
  StartServed();
  Done(Want(5).grants);
  const auto pass = Want(5).grants;
  ASSERT_THAT(pass, SizeIs(1)) << "the evaluation sees nothing of the next epoch";
  EXPECT_EQ(pass[0].shard.dataset, DatasetId(1));
  Done(pass);
  const auto next = Want(5).grants;
  ASSERT_THAT(next, SizeIs(2)) << "no snapshot has the epoch";
  EXPECT_EQ(next[0].shard.epoch, EpochIndex(1));
}

TEST_F(EpochEndsTest, JobsWhoseEvaluationsOverlapWaitForNothing) {
  options.evaluation = Evaluation::kOverlapping;
  StartServed();
  const auto grants = Want(5).grants;
  ASSERT_THAT(grants, SizeIs(5));
  Done(grants);
  Done(Want(1).grants);  // pass 0, while shards of epochs 1 and 2 are DONE
  Advance(options.snapshot_interval);
  Snapshot();
  EXPECT_EQ(core->ledger().Metrics(DatasetId(1), EpochIndex(0))->records_later, 30u);
}

TEST_F(EpochEndsTest, TheWeightsOfTheBestEpochAreKeptAndTheirFilesWithThem) {
  KeepBest();
  StartServed();
  RunEpochs({3, 1});
  EXPECT_THAT(Kept(), ElementsAre(1));
  const std::vector<std::string> files = Files(1);
  core->TakeUnusedFiles();
  RunEpochs({2, 2});
  EXPECT_THAT(Kept(), ElementsAre(1));
  EXPECT_EQ(Files(1), files);
  for (const std::string& file : core->TakeUnusedFiles()) {
    EXPECT_THAT(files, ::testing::Not(::testing::Contains(file)));
  }
  RunEpochs({0.5});
  EXPECT_THAT(Kept(), ElementsAre(4));
  EXPECT_THAT(core->TakeUnusedFiles(), ::testing::IsSupersetOf(files)) << "they are not needed";
  EXPECT_EQ(core->state(), JobState::kSucceeded);
}

TEST_F(EpochEndsTest, EveryNthEpochIsKeptTheNewestOfThem) {
  options.epoch_ends.keep_every = 2;
  options.epoch_ends.keep_last = 1;
  StartServed();
  RunEpochs({1, 1, 1});
  EXPECT_THAT(Kept(), ElementsAre(1));
  RunEpochs({1});
  EXPECT_THAT(Kept(), ElementsAre(3));
}

TEST_F(EpochEndsTest, WhatWasDecidedIsKnownAfterARestartOfTheMaster) {
  KeepBest();
  StartServed();
  RunEpochs({1, 2});
  const std::vector<std::string> files = Files(0);
  Restart();
  EXPECT_EQ(core->epoch_ends().ended(), 2u);
  EXPECT_EQ(core->epoch_ends().best(), EpochIndex(0));
  EXPECT_EQ(Files(0), files);
}

TEST_F(EpochEndsTest, AMetricThatGetsNoBetterEndsTheJob) {
  options.epoch_ends.stop_early = EpochEndOptions::StopEarly{Loss(), 2, 0};
  StartServed();
  RunEpochs({3, 2, 2});
  EXPECT_EQ(core->state(), JobState::kRunning);
  RunEpochs({2.5});
  EXPECT_EQ(core->state(), JobState::kSucceeded);
  EXPECT_THAT(core->reason(),
              HasSubstr("stopped early after epoch 4 of 5: loss of dataset 'test'"));
  EXPECT_THAT(core->reason(), HasSubstr("the best was 2 after epoch 2"));
  EXPECT_THAT(Want(5).grants, IsEmpty());
  EXPECT_EQ(core->ledger().queue().epochs(DatasetId(0)), 4u);
  options.run_id = "run-2";
  Restart();
  EXPECT_EQ(core->state(), JobState::kSucceeded) << "another run has nothing to do either";
  EXPECT_THAT(core->reason(), HasSubstr("stopped early after epoch 4 of 5"));
}

TEST_F(EpochEndsTest, MorePatienceLetsAJobGoOnThatStoppedEarly) {
  options.epoch_ends.stop_early = EpochEndOptions::StopEarly{Loss(), 1, 0};
  StartServed();
  RunEpochs({1, 1});
  EXPECT_EQ(core->state(), JobState::kSucceeded);
  options.epoch_ends.stop_early->patience = 2;
  options.run_id = "run-2";
  StartServed();
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_THAT(Want(5).grants, SizeIs(2));
}

TEST_F(EpochEndsTest, LessPatienceDoesNotCutOffAnEpochThatHasBegun) {
  options.epoch_ends.stop_early = EpochEndOptions::StopEarly{Loss(), 3, 0};
  StartServed();
  RunEpochs({1, 2});
  Done(Want(5).grants);
  options.epoch_ends.stop_early->patience = 1;
  options.run_id = "run-2";
  StartServed();
  EXPECT_EQ(core->state(), JobState::kRunning);
  RunEpochs({3});
  EXPECT_EQ(core->state(), JobState::kSucceeded);
  EXPECT_THAT(core->reason(), HasSubstr("stopped early after epoch 3 of 5"));
}

TEST_F(EpochEndsTest, AMetricThatNobodyReportsIsNeverBetter) {
  options.epoch_ends.stop_early = EpochEndOptions::StopEarly{Loss(), 1, 0};
  options.epoch_ends.stop_early->metric.name = "no-such";
  StartServed();
  RunEpochs({1});
  EXPECT_EQ(core->state(), JobState::kSucceeded);
  EXPECT_THAT(core->reason(), HasSubstr("no-such of dataset 'test' got no better"));
}

TEST_F(EpochEndsTest, EpochsThatBeganBeforeItWasAskedForCountAsEnded) {
  options.evaluation = Evaluation::kOverlapping;
  StartServed();
  Done(Want(5).grants);  // of epochs 0, 1 and 2; no snapshot has them
  KeepBest();
  options.run_id = "run-2";
  StartServed();
  EXPECT_EQ(core->epoch_ends().ended(), 2u);
  EXPECT_THAT(Want(9).grants, SizeIs(6)) << "three epochs run again, and no more begins";
}

/// The master knows eight epochs of a dataset at most: four in full, and a curve of two.
class ThinnedEpochsTest : public EpochEndsTest {
 protected:
  void SetUp() override {
    EpochEndsTest::SetUp();
    options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 60, 2),
                        testing::PlanFor("test", DatasetMode::kEvaluate, 1, 1)};
    options.limits.epochs_known = 8;
    options.epoch_ends.keep_every = 1'000;  // each epoch is COMMITTED before the next one begins
  }
  /// The master dies, and the worker reports to the next one.
  void RestartServed() {
    StartServed();
    Want(0);
    Advance(std::chrono::milliseconds(50));
  }
  std::vector<uint32_t> Known() const {
    std::vector<uint32_t> epochs;
    for (const EpochIndex epoch : core->ledger().totals().KnownEpochs(DatasetId(1))) {
      epochs.push_back(epoch.value());
    }
    return epochs;
  }
  uint64_t RecordsOfTraining() const {
    uint64_t records = 0;
    for (uint32_t epoch = 0; epoch < 60; ++epoch) {
      records += core->ledger().RecordsCommitted(DatasetId(0), EpochIndex(epoch));
    }
    return records;
  }
};

TEST_F(ThinnedEpochsTest, ARestartedMasterKnowsThatAllOfThemAreCommitted) {
  StartServed();
  for (uint32_t i = 0; i < 40; ++i) RunEpochs({5});
  EXPECT_LE(Known().size(), 8u);
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_EQ(core->ledger().queue().committed_count(), 40u * 3);
    EXPECT_EQ(RecordsOfTraining(), 40u * 20);
    EXPECT_EQ(core->ledger().queue().StateOf({DatasetId(0), EpochIndex(1), ShardIndex(1)}),
              ShardState::kCommitted);
    const std::vector<uint32_t> known = Known();
    RestartServed();
    EXPECT_EQ(Known(), known);
  }
  const auto next = Want(5).grants;
  ASSERT_THAT(next, SizeIs(2));
  EXPECT_EQ(next[0].shard.epoch, EpochIndex(40));
  EXPECT_LE(core->forget_state().shards.size(), 2u);
}

TEST_F(ThinnedEpochsTest, TheBestTheKeptAndTheNewestStayWithTheirMetrics) {
  KeepBest();
  StartServed();
  for (uint32_t i = 0; i < 40; ++i) RunEpochs({i == 13 ? 1.0 : 3.0});
  EXPECT_EQ(core->epoch_ends().best(), EpochIndex(13));
  EXPECT_EQ(core->epoch_ends().ValueOf(EpochIndex(13)), 1.0);
  EXPECT_THAT(Known(), ::testing::IsSupersetOf({0u, 13u, 36u, 37u, 38u, 39u}));
  StartServed();
  EXPECT_EQ(core->epoch_ends().best(), EpochIndex(13));
  EXPECT_THAT(Kept(), ElementsAre(13));
}

TEST_F(ThinnedEpochsTest, WhatCountsAsBetterDoesNotDependOnWhatWasThinnedOut) {
  // Each epoch is better than all before, but only every fourth by more than 1. The epochs that are
  // left would say otherwise.
  options.epoch_ends.stop_early = EpochEndOptions::StopEarly{Loss(), 9, 1};
  StartServed();
  double loss = 100;
  for (uint32_t i = 0; i < 40; ++i) {
    RunEpochs({loss});
    EXPECT_EQ(core->epoch_ends().gain().epoch, i / 4 * 4 + 1) << i;
    if (i % 7 == 0) {
      RestartServed();
      EXPECT_EQ(core->epoch_ends().gain().epoch, i / 4 * 4 + 1) << i;
    }
    loss -= 0.3;
  }
  for (uint32_t i = 0; i < 6; ++i) RunEpochs({100});
  EXPECT_THAT(core->reason(), HasSubstr("stopped early after epoch 46 of 60"));
}

TEST_F(ThinnedEpochsTest, AnEpochWithAFailedShardIsNotThinnedOut) {
  options.leases.failures_max = 1;
  StartServed();
  RunEpochs({3});
  const auto grants = Want(5).grants;
  ASSERT_THAT(grants, SizeIs(2));
  WorkerExchangeRequest failed = Request();
  Hold({grants[1]}, &failed);
  failed.returned.push_back({grants[0].shard, grants[0].token, true, "bad", false, {}, 1});
  Exchange(failed);
  Done({grants[1]});
  Report(Want(5).grants.at(0), 3);
  Snapshot();
  for (uint32_t i = 0; i < 20; ++i) RunEpochs({3});
  EXPECT_THAT(core->ledger().totals().KnownEpochs(DatasetId(0)),
              ::testing::Contains(EpochIndex(1)));
  ASSERT_EQ(core->ledger().queue().failed_count(), 1u);
  RestartServed();
  ASSERT_EQ(core->RetryShards({}, At()).value(), 1u);
  const auto again = Want(1).grants;
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].shard, grants[0].shard);
}

}  // namespace
}  // namespace muster
