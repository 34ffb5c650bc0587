#include "master/core/groups/group_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using testing::kTrainSet;
using testing::TrainShard;

class GroupShardsTest : public ::testing::Test, protected testing::PartsFixture {
 protected:
  GroupShardsTest() {
    options.group.emplace();
    Start();
    shards.emplace(&books(), &failures(), &leasing(), &dones(), &life(), &snapshots());
    shards->SetTime(At());
  }
  void Commit(uint64_t index) {
    ShardMetrics metrics;
    metrics.records = 10;
    shards->Commit(TrainShard(index), shards->NewToken(), metrics, "worker-0");
  }
  uint64_t Done() { return books().ledger.queue().done().size(); }
  std::optional<GroupShards> shards;
};

TEST_F(GroupShardsTest, TheNextShardStaysTodo) {
  const std::optional<StepData> next = shards->Next();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shard, TrainShard(0));
  EXPECT_EQ(next->minibatches, 2u);
  EXPECT_EQ(next->ahead, TrainShard(1));
  EXPECT_TRUE(shards->IsTodo(TrainShard(0)));
  EXPECT_EQ(shards->Next()->shard, TrainShard(0));
  const LeaseToken token = shards->NewToken();
  EXPECT_LT(token, shards->NewToken());
}

TEST_F(GroupShardsTest, TheEvaluationComesAfterItsTraining) {
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(shards->Next()->shard, TrainShard(i));
    Commit(i);
  }
  EXPECT_EQ(shards->Next()->shard.dataset, testing::kCheckSet);
  EXPECT_EQ(shards->Next()->ahead, std::nullopt);
}

TEST_F(GroupShardsTest, CheckpointsCommitTheOldestAndRollbacksUndoTheNewest) {
  for (uint64_t i = 0; i < 4; ++i) Commit(i);
  shards->CommitAllBut(3);
  EXPECT_EQ(Done(), 3u);
  EXPECT_EQ(books().ledger.queue().StateOf(TrainShard(0)), ShardState::kCommitted);
  shards->CommitAllBut(3);
  EXPECT_EQ(Done(), 3u) << "idempotent";
  shards->Undo(2);
  EXPECT_EQ(Done(), 1u);
  EXPECT_TRUE(shards->IsTodo(TrainShard(2)));
  EXPECT_FALSE(shards->IsTodo(TrainShard(1)));
  EXPECT_EQ(shards->Next()->shard, TrainShard(2));
  EXPECT_EQ(books().totals.replayed_shards, 2u);
  shards->Undo(1);
  EXPECT_EQ(Done(), 0u);
  shards->CommitAllBut(0);
}

TEST_F(GroupShardsTest, TheEndOfTheDataNeedsACheckpoint) {
  for (uint64_t i = 0; i < 4; ++i) Commit(i);
  EXPECT_FALSE(shards->NeedsCheckpoint()) << "the evaluation is to be done";
  const std::optional<StepData> last = shards->Next();
  shards->Commit(last->shard, shards->NewToken(), {}, "worker-0");
  EXPECT_TRUE(shards->NeedsCheckpoint());
  EXPECT_FALSE(shards->Over());
  shards->CommitAllBut(0);
  EXPECT_TRUE(shards->Over());
  EXPECT_FALSE(shards->Next().has_value());
}

TEST_F(GroupShardsTest, ADrainingJobHasNoNextShard) {
  Commit(0);
  life().Drain(At());
  EXPECT_FALSE(shards->Next().has_value());
  EXPECT_TRUE(shards->NeedsCheckpoint());
}

TEST_F(GroupShardsTest, FailuresCountForTheShard) {
  const LeaseToken token = shards->NewToken();
  shards->Charge(TrainShard(0), token, "worker-0", 7, "NaN");
  shards->Charge(TrainShard(0), token, "worker-1", 8, "NaN");
  EXPECT_EQ(books().ledger.FindFailure(TrainShard(0))->failures, 1u);
  EXPECT_THAT(Events("shard-failure"), ElementsAre("worker-0: shard 0/0/0 of dataset 'train': "
                                                   "failure 1 of 3: NaN"));
}

TEST_F(GroupShardsTest, AFatalFailureEndsTheJobOnce) {
  shards->FailJob("why");
  shards->FailJob("again");
  EXPECT_EQ(life().reason(), "why");
}

}  // namespace
}  // namespace muster
