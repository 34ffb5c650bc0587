#include "master/core/workers/leasing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kCheckSet;
using testing::kWorker;
using testing::PartsFixture;
using ::testing::SizeIs;
using testing::TrainShard;

/// A token of the previous master.
const LeaseToken kEarlier{MasterIncarnation(1), 5};

class LeasingTest : public ::testing::Test, protected PartsFixture {
 protected:
  void BeginGrace() { leasing().grace().Begin({"worker-0"}, now + seconds(10)); }
  /// The worker says that it holds a shard under a lease of the master before.
  std::vector<LeaseToken> HoldEarlier(const ShardId& shard, RestoreEpoch restore_epoch = {}) {
    WorkerExchangeRequest request = Holding({});
    request.held.push_back({shard, kEarlier, restore_epoch, {}, LeasePhase::kComputing, 1});
    std::vector<LeaseToken> lost;
    leasing().TakeHeld(request, kWorker, At(), &lost);
    return lost;
  }
};

TEST_F(LeasingTest, ADoneIsRememberedWhileTheWorkerListsIt) {
  Start();
  const ShardGrant grant = Grant(1).at(0);
  EXPECT_FALSE(leasing().WasAccepted(DoneOf(grant), kWorker));
  leasing().Finish(grant.token, now);
  std::vector<LeaseToken> lost;
  leasing().TakeHeld(Holding({grant}), kWorker, At(), &lost);
  EXPECT_TRUE(leasing().WasAccepted(DoneOf(grant), kWorker));
  EXPECT_THAT(lost, IsEmpty()) << "it is told by the verdict";
  leasing().TakeHeld(Holding({}), kWorker, At(), &lost);
  EXPECT_FALSE(leasing().WasAccepted(DoneOf(grant), kWorker));
}

TEST_F(LeasingTest, WhatIsOfTheMasterBeforeGoesOnInTheGracePeriodAlone) {
  Start();
  EXPECT_THAT(HoldEarlier(TrainShard(2)), ElementsAre(kEarlier));
  BeginGrace();
  EXPECT_THAT(HoldEarlier(TrainShard(2)), IsEmpty());
  EXPECT_EQ(leasing().table().leases().count(kEarlier), 1u);
  EXPECT_EQ(books().totals.reasserted_leases, 1u);
}

TEST_F(LeasingTest, AnEvaluationOfBeforeARestoreDoesNot) {
  Start();
  BeginGrace();
  const ShardId check{kCheckSet, EpochIndex(0), ShardIndex(0)};
  EXPECT_THAT(HoldEarlier(check), ElementsAre(kEarlier));
  EXPECT_THAT(HoldEarlier(check, books().partitions.restore_epoch()), IsEmpty());
}

TEST_F(LeasingTest, NothingGoesOnWhenTheJobIsOver) {
  Start();
  Grant(2);
  BeginGrace();
  leasing().Close();
  EXPECT_EQ(leasing().table().size(), 0u);
  EXPECT_THAT(HoldEarlier(TrainShard(2)), ElementsAre(kEarlier));
}

TEST_F(LeasingTest, TheFloorRestsInTheGracePeriod) {
  Start();
  const ShardGrant grant = TrainOne();
  leasing().forgetting().OnCommitted(grant.shard);
  BeginGrace();
  leasing().TellFloor();
  EXPECT_EQ(leasing().forgetting().state().version, 0u);
  leasing().grace().Settle(kWorker.name);
  EXPECT_TRUE(leasing().grace().Tick(now));
  leasing().TellFloor();
  EXPECT_NE(leasing().forgetting().state().version, 0u);
  EXPECT_EQ(leasing().forgetting().state().floor, leasing().Floor());
}

TEST_F(LeasingTest, WithoutNewOnesItGrantsAgainWhatWasNotSeen) {
  Start();
  const ShardGrant unseen = Grant(1).at(0);
  WorkerExchangeRequest request = Holding({});
  request.want = 3;
  WorkerExchangeReply reply;
  leasing().Grant(request, kWorker, {.shards = 3, .with_new = false}, At(), &reply);
  ASSERT_THAT(reply.grants, SizeIs(1));
  EXPECT_EQ(reply.grants[0].token, unseen.token);
}

TEST_F(LeasingTest, WhoMayHaveNothingLosesWhatItHasNotSeen) {
  Start();
  Grant(1);
  WorkerExchangeRequest request = Holding({});
  request.want = 1;
  WorkerExchangeReply reply;
  leasing().Grant(request, kWorker, {.shards = 0}, At(), &reply);
  EXPECT_EQ(leasing().table().size(), 0u);
  EXPECT_EQ(books().ledger.queue().StateOf(TrainShard(0)), ShardState::kTodo);
}

TEST_F(LeasingTest, NearTheEndNoWorkerHasAQueueWhileAnotherHasNothing) {
  options.datasets[0].shards = 12;
  Start();
  EXPECT_THAT(Grant(12), SizeIs(12)) << "nobody else is there";
  leasing().EndAll();
  leasing().Join({"worker-1", 8}, now);
  EXPECT_THAT(GrantUpTo(12), SizeIs(3)) << "half of its share of 12";
}

TEST_F(LeasingTest, ACrashIsOfTheRunThatItsWorkerHad) {
  Start();
  const ShardGrant grant = Grant(1).at(0);
  EXPECT_FALSE(leasing().RunOf(grant.token, "worker-1", 1).has_value());
  EXPECT_FALSE(leasing().RunOf(kEarlier, "worker-0", 1).has_value());
  leasing().EndOf(kWorker, Leasing::EndCause::kNodeFailure);
  ASSERT_TRUE(leasing().RunOf(grant.token, "worker-0", 1).has_value()) << "it has just ended";
  EXPECT_EQ(leasing().RunOf(grant.token, "worker-0", 1)->shard, grant.shard);
}

TEST_F(LeasingTest, WhatNeverBeganIsNoFailureOfANode) {
  Start();
  const std::vector<ShardGrant> grants = Grant(2);
  WorkerExchangeRequest request = Holding({grants[0]});
  std::vector<LeaseToken> lost;
  leasing().TakeHeld(request, kWorker, At(), &lost);
  leasing().EndOf(kWorker, Leasing::EndCause::kNodeFailure);
  ASSERT_NE(books().ledger.FindFailure(grants[0].shard), nullptr);
  EXPECT_EQ(books().ledger.FindFailure(grants[0].shard)->node_failures, 1u);
  EXPECT_EQ(books().ledger.FindFailure(grants[1].shard), nullptr);
}

TEST_F(LeasingTest, OnlyEvaluationsOfWhatIsReplayedEnd) {
  options.datasets[0].shards = 1;
  options.datasets[0].records = 10;
  Start();
  const ShardGrant trained = TrainOne();
  const ShardGrant check = Grant(1).at(0);
  ASSERT_EQ(check.shard.dataset, kCheckSet);
  EXPECT_EQ(leasing().EndOutdatedEvaluations({}), 0u);
  const ShardId later{trained.shard.dataset, EpochIndex(1), ShardIndex(0)};
  EXPECT_EQ(leasing().EndOutdatedEvaluations({{DoneSeq(2), later, trained.token}}), 0u);
  EXPECT_EQ(leasing().EndOutdatedEvaluations({{DoneSeq(1), trained.shard, trained.token}}), 1u);
  EXPECT_EQ(leasing().table().leases().count(check.token), 0u);
}

TEST_F(LeasingTest, PredictionsEndIfTrainingOfAnyEpochIsReplayed) {
  options.datasets[0].shards = 1;
  options.datasets[0].records = 10;
  options.datasets[0].epochs = 3;
  options.datasets[1].mode = DatasetMode::kPredict;
  Start();
  ShardGrant trained;
  for (int epoch = 0; epoch < 3; ++epoch) trained = TrainOne();
  ASSERT_EQ(trained.shard.epoch, EpochIndex(2));
  const ShardGrant predict = Grant(1).at(0);
  ASSERT_EQ(predict.shard.dataset, kCheckSet);
  EXPECT_EQ(leasing().EndOutdatedEvaluations({}), 0u);
  EXPECT_EQ(leasing().EndOutdatedEvaluations({{DoneSeq(3), trained.shard, trained.token}}), 1u)
      << "of the last epoch, although the shard is of epoch 0 of its dataset";
  EXPECT_EQ(leasing().table().leases().count(predict.token), 0u);
}

}  // namespace
}  // namespace muster
