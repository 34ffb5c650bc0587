#include "master/core/workers/dones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using testing::kCheckSet;
using testing::kWorker;
using testing::PartsFixture;
using testing::TrainShard;

class DonesTest : public ::testing::Test, protected PartsFixture {
 protected:
  /// Takes the done of `grant` as if its map had been of this R.
  DoneCode Take(const ShardGrant& grant, RestoreEpoch restore_epoch) {
    DoneReport done = DoneOf(grant);
    done.restore_epoch = restore_epoch;
    return dones().Take(done, kWorker, At()).code;
  }
  /// A partition is restored. Returns the new R.
  RestoreEpoch Restore() {
    books().partitions.BeginRun(1);
    return books().partitions.restore_epoch();
  }
};

TEST_F(DonesTest, ADoneUnderAnOlderRIsAskedForAgain) {
  Start();
  const ShardGrant grant = Grant(1).at(0);
  const RestoreEpoch newest = Restore();
  EXPECT_EQ(Take(grant, grant.restore_epoch), DoneCode::kReverify);
  EXPECT_EQ(Take(grant, grant.restore_epoch), DoneCode::kReverify);
  EXPECT_EQ(books().totals.reverified_runs, 1u) << "one restore, told twice";
  EXPECT_EQ(Take(grant, newest), DoneCode::kAccepted);
  EXPECT_EQ(books().totals.reverified_runs, 1u);
}

TEST_F(DonesTest, WhoHasLookedAgainByItselfIsNotAsked) {
  Start();
  const ShardGrant grant = Grant(1).at(0);
  EXPECT_EQ(Take(grant, Restore()), DoneCode::kAccepted);
  EXPECT_EQ(books().totals.reverified_runs, 1u) << "it ran again all the same";
}

TEST_F(DonesTest, AnEvaluationIsDoneUnderAnyR) {
  options.datasets[0].shards = 1;
  options.datasets[0].records = 10;
  Start();
  TrainOne();
  const ShardGrant check = Grant(1).at(0);
  ASSERT_EQ(check.shard.dataset, kCheckSet);
  Restore();
  EXPECT_EQ(Take(check, check.restore_epoch), DoneCode::kAccepted);
  EXPECT_EQ(books().ledger.queue().StateOf(check.shard), ShardState::kDone);
}

TEST_F(DonesTest, WhatNobodyHasOnLeaseIsRefusedAndCounted) {
  Start();
  ShardGrant none{TrainShard(0), LeaseToken(MasterIncarnation(2), 9), {}, {}};
  EXPECT_EQ(Take(none, books().partitions.restore_epoch()), DoneCode::kRefused);
  EXPECT_EQ(books().totals.refused_dones, 1u);
  none.shard = TrainShard(4);
  EXPECT_EQ(Take(none, books().partitions.restore_epoch()), DoneCode::kRefused);
  EXPECT_EQ(books().totals.refused_dones, 1u) << "there is no such shard, so no run is lost";
}

}  // namespace
}  // namespace muster
