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
  const auto& shards = forgetting->state().shards;
  const auto found = shards.find({kForgetShard.dataset, kForgetShard.epoch});
  return found != shards.end() && found->second.Contains(kForgetShard.index.value());
}

TEST(ForgettingTest, AShardIsForgottenWhenItsTokenIsBelowTheFloor) {
  Forgetting forgetting(kThisMaster, {});
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
  Forgetting done_under_an_earlier_lease(kThisMaster, {});
  done_under_an_earlier_lease.OnLeased(kForgetShard, OfEarlier(5));
  Forgetting done_before(kThisMaster, {});
  Forgetting::Shards committed;
  committed[{kForgetShard.dataset, kForgetShard.epoch}].Add(kForgetShard.index.value());
  Forgetting committed_before(kThisMaster, std::move(committed));
  done_under_an_earlier_lease.OnCommitted(kForgetShard);
  done_before.OnCommitted(kForgetShard);
  for (Forgetting* one : {&done_under_an_earlier_lease, &done_before, &committed_before}) {
    EXPECT_FALSE(ForgottenAt(OfEarlier(50), one));
    EXPECT_TRUE(ForgottenAt(OfThis(1), one));
  }
}

TEST(ForgettingTest, AReassertedLeaseHidesNoNewerToken) {
  // Granted again in the grace period, and then told of by the worker that had it before.
  Forgetting forgetting(kThisMaster, {});
  forgetting.OnLeased(kForgetShard, OfThis(7));
  forgetting.OnLeased(kForgetShard, OfEarlier(5));
  forgetting.OnCommitted(kForgetShard);
  EXPECT_FALSE(ForgottenAt(OfThis(7), &forgetting)) << "its other worker may still push";
  EXPECT_TRUE(ForgottenAt(OfThis(8), &forgetting));
}

TEST(ForgettingTest, WhatIsForgottenIsToldAgainAfterARestore) {
  Forgetting forgetting(kThisMaster, {});
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

}  // namespace
}  // namespace muster
