#include "master/core/workers/forgetting.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr MasterIncarnation kEarlierMaster{1}, kThisMaster{2};
constexpr ShardId kForgetShard{DatasetId(0), EpochIndex(0), ShardIndex(3)};

LeaseToken OfEarlier(uint32_t count) {
  return LeaseToken(kEarlierMaster, count);
}
LeaseToken OfThis(uint32_t count) {
  return LeaseToken(kThisMaster, count);
}
/// True if `kForgetShard` is forgotten when `floor` is the smallest token of any lease.
bool ForgottenAt(LeaseToken floor, Forgetting* forgetting) {
  forgetting->Update(floor);
  return forgetting->state().Contains(kForgetShard);
}

TEST(ForgettingTest, AShardIsForgottenWhenItsTokenIsBelowTheFloor) {
  Forgetting forgetting(kThisMaster, {}, {5});
  forgetting.OnLeased(kForgetShard, OfThis(4));
  forgetting.OnLeased(kForgetShard, OfThis(7));
  EXPECT_FALSE(ForgottenAt(OfThis(9), &forgetting)) << "not COMMITTED";
  forgetting.OnCommitted(kForgetShard);
  EXPECT_FALSE(ForgottenAt(OfThis(7), &forgetting));
  EXPECT_EQ(forgetting.state().version, 0u);
  EXPECT_TRUE(ForgottenAt(OfThis(8), &forgetting));
  EXPECT_EQ(forgetting.state().floor, OfThis(8));
}

TEST(ForgettingTest, TokensOfEarlierMastersCountAsIssuedForEveryShard) {
  // An earlier master may have leased the shard under (1, 60) to a worker that still pushes: the
  // floor must be above it before partitions forget, whatever the shard was done under.
  Forgetting done_under_an_earlier_lease(kThisMaster, {}, {5});
  done_under_an_earlier_lease.OnLeased(kForgetShard, OfEarlier(5));
  Forgetting done_before(kThisMaster, {}, {5});
  Forgetting::Shards committed;
  committed.shards[{kForgetShard.dataset, kForgetShard.epoch}].Add(kForgetShard.index.value());
  Forgetting committed_before(kThisMaster, std::move(committed), {5});
  done_under_an_earlier_lease.OnCommitted(kForgetShard);
  done_before.OnCommitted(kForgetShard);
  for (Forgetting* one : {&done_under_an_earlier_lease, &done_before, &committed_before}) {
    EXPECT_FALSE(ForgottenAt(OfEarlier(50), one));
    EXPECT_TRUE(ForgottenAt(OfThis(1), one));
  }
}

TEST(ForgettingTest, AReassertedLeaseHidesNoNewerToken) {
  // Granted again in the grace period, and then told of by the worker that had it before.
  Forgetting forgetting(kThisMaster, {}, {5});
  forgetting.OnLeased(kForgetShard, OfThis(7));
  forgetting.OnLeased(kForgetShard, OfEarlier(5));
  forgetting.OnCommitted(kForgetShard);
  EXPECT_FALSE(ForgottenAt(OfThis(7), &forgetting)) << "its other worker may still push";
  EXPECT_TRUE(ForgottenAt(OfThis(8), &forgetting));
}

TEST(ForgettingTest, WhatIsForgottenIsToldAgainAfterARestore) {
  Forgetting forgetting(kThisMaster, {}, {5});
  forgetting.OnRestored();
  forgetting.Update(OfThis(1));
  EXPECT_EQ(forgetting.state().version, 0u) << "there is nothing to tell";
  forgetting.OnLeased(kForgetShard, OfThis(1));
  forgetting.OnCommitted(kForgetShard);
  ASSERT_TRUE(ForgottenAt(OfThis(2), &forgetting));
  const uint64_t version = forgetting.state().version;
  forgetting.Update(OfThis(3));
  EXPECT_EQ(forgetting.state().version, version) << "nothing is new";
  forgetting.OnRestored();
  forgetting.Update(OfThis(4));
  EXPECT_GT(forgetting.state().version, version);
}

ShardId InEpoch(uint32_t epoch, uint64_t index) {
  return {DatasetId(0), EpochIndex(epoch), ShardIndex(index)};
}

TEST(ForgettingTest, AnEpochOfWhichAllIsForgottenIsANumber) {
  Forgetting forgetting(kThisMaster, {}, {3});
  for (uint32_t i = 0; i < 300; ++i) {
    forgetting.OnLeased(InEpoch(i / 3, i % 3), OfThis(i + 1));
    forgetting.OnCommitted(InEpoch(i / 3, i % 3));
    forgetting.Update(OfThis(i + 1));
    // The token of the newest shard is not below the floor.
    const bool whole = i >= 3;
    EXPECT_EQ(forgetting.state().epochs.empty(), !whole) << i;
    EXPECT_LE(forgetting.state().shards.size(), 1u);
    EXPECT_FALSE(forgetting.state().Contains(InEpoch(i / 3, i % 3)));
    if (i == 0) continue;
    EXPECT_TRUE(forgetting.state().Contains(InEpoch((i - 1) / 3, (i - 1) % 3)));
  }
  ASSERT_EQ(forgetting.state().epochs.size(), 1u);
  EXPECT_EQ(forgetting.state().epochs.at(DatasetId(0)).intervals().size(), 1u);
  EXPECT_EQ(forgetting.state().epochs.at(DatasetId(0)).count(), 99u);
}

TEST(ForgettingTest, WholeEpochsOfEarlierMastersAreForgottenAsTheirShardsAre) {
  Forgetting::Shards committed;
  committed.epochs[DatasetId(0)].Add(0, 40);
  committed.shards[{DatasetId(0), EpochIndex(41)}].Add(0, 3);
  committed.shards[{DatasetId(0), EpochIndex(42)}].Add(1, 3);
  Forgetting forgetting(kThisMaster, std::move(committed), {3});
  forgetting.Update(OfEarlier(50));
  EXPECT_TRUE(forgetting.state().empty()) << "a lease of an earlier master may be in use";
  forgetting.Update(OfThis(1));
  EXPECT_EQ(forgetting.state().epochs.at(DatasetId(0)).count(), 41u);
  EXPECT_EQ(forgetting.state().shards.size(), 1u);
  EXPECT_FALSE(forgetting.state().Contains(InEpoch(42, 0)));
  EXPECT_FALSE(forgetting.state().Contains(InEpoch(40, 0)));
}

TEST(ForgettingTest, AnEpochThatGrowsIsNeverWhole) {
  Forgetting forgetting(kThisMaster, {}, {0});
  for (uint32_t i = 0; i < 9; ++i) {
    forgetting.OnLeased(InEpoch(0, i), OfThis(i + 1));
    forgetting.OnCommitted(InEpoch(0, i));
  }
  forgetting.Update(OfThis(10));
  EXPECT_TRUE(forgetting.state().epochs.empty());
  EXPECT_TRUE(forgetting.state().Contains(InEpoch(0, 8)));
}

}  // namespace
}  // namespace muster
