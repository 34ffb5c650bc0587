#include "master/core/group_job/group_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kTrainSet;
using testing::TrainShard;

class GroupShardsTest : public ::testing::Test, protected testing::PartsFixture {
 protected:
  GroupShardsTest() {
    options.group.emplace();
    Begin(0);
  }
  void Begin(uint32_t servers) {
    options.servers = servers;
    Start();
    shards = &group_shards();
    shards->SetTime(At());
  }
  void Commit(uint64_t index) {
    ShardMetrics metrics;
    metrics.records = 10;
    shards->Commit(TrainShard(index), shards->NewToken(TrainShard(index)), metrics, "worker-0", {});
  }
  uint64_t Done() { return books().ledger.queue().done().size(); }
  GroupShards* shards = nullptr;
};

TEST_F(GroupShardsTest, WorkersThatRunOrAreOnTheirWayAreCounted) {
  EXPECT_EQ(shards->Workers(), std::nullopt) << "the job does not say how many it is to have";
  options.group->workers = 3;
  Begin(0);
  EXPECT_EQ(shards->Workers(), 3u);
  const auto add = [&](const std::string& name, NodeState state, uint64_t told_start) {
    Node* const node = books().nodes.FindOrAdd(name, NodeRole::kWorker, leasing().table());
    node->record.state = state;
    node->record.told_start = StartNumber(told_start);
    return node;
  };
  add("worker-1", NodeState::kRunning, 1);
  add("worker-2", NodeState::kExited, 0);
  EXPECT_EQ(shards->Workers(), 3u) << "the second is of an earlier run";
  add("worker-2", NodeState::kStarting, 1);
  EXPECT_EQ(shards->Workers(), 3u);
  for (const char* more : {"worker-3", "worker-4"}) add(more, NodeState::kRunning, 1);
  EXPECT_EQ(shards->Workers(), 4u) << "the job has got more";
  add("worker-4", NodeState::kRunning, 1)->drain.state = DrainState::kDraining;
  EXPECT_EQ(shards->Workers(), 3u);
  Node* const held = add("worker-3", NodeState::kExited, 1);
  held->hold = {.start = StartNumber(2), .wait = NodeWait::kUnschedulable, .reason = "no place"};
  EXPECT_EQ(shards->Workers(), 2u) << "the cluster has no place for it";
}

TEST_F(GroupShardsTest, TheNextShardStaysTodo) {
  const std::optional<StepData> next = shards->Next();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shard, TrainShard(0));
  EXPECT_EQ(next->minibatches, 2u);
  EXPECT_EQ(next->ahead, TrainShard(1));
  EXPECT_TRUE(shards->IsOpen(TrainShard(0)));
  EXPECT_EQ(shards->Next()->shard, TrainShard(0));
  const LeaseToken token = shards->NewToken(TrainShard(0));
  EXPECT_LT(token, shards->NewToken(TrainShard(0)));
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
  shards->Checkpointed(3);
  EXPECT_EQ(Done(), 3u);
  EXPECT_EQ(books().ledger.queue().StateOf(TrainShard(0)), ShardState::kCommitted);
  shards->Checkpointed(3);
  EXPECT_EQ(Done(), 3u) << "idempotent";
  shards->Undo(2);
  EXPECT_EQ(Done(), 1u);
  EXPECT_TRUE(shards->IsOpen(TrainShard(2)));
  EXPECT_FALSE(shards->IsOpen(TrainShard(1)));
  EXPECT_EQ(shards->Next()->shard, TrainShard(2));
  EXPECT_EQ(books().totals.replayed_shards, 2u);
  shards->Undo(1);
  EXPECT_EQ(Done(), 0u);
  shards->Checkpointed(0);
}

TEST_F(GroupShardsTest, TheEndOfTheDataNeedsACheckpoint) {
  for (uint64_t i = 0; i < 4; ++i) Commit(i);
  EXPECT_FALSE(shards->NeedsCheckpoint()) << "the evaluation is to be done";
  const std::optional<StepData> last = shards->Next();
  shards->Commit(last->shard, shards->NewToken(last->shard), {}, "worker-0", {});
  EXPECT_TRUE(shards->NeedsCheckpoint());
  EXPECT_FALSE(shards->Over());
  shards->Checkpointed(0);
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
  const LeaseToken token = shards->NewToken(TrainShard(0));
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

/// Steps push to the tables of one server.
class GroupTablesTest : public GroupShardsTest {
 protected:
  GroupTablesTest() { Begin(1); }
  void Push(uint64_t index, RestoreEpoch pushed_under) {
    shards->Commit(TrainShard(index), shards->NewToken(TrainShard(index)), {}, "worker-0",
                   pushed_under);
  }
  RestoreEpoch Now() { return books().partitions.restore_epoch(); }
  /// All partitions have a snapshot with everything that is there now.
  void Snapshot() {
    snapshots().Ask(ServerId(0), owner_, {.all = true}, now);
    ServerExchangeReply reply;
    books().partitions.FillCommands(ServerId(0), owner_, &reply);
    ServerExchangeRequest request = ServerCall(owner_, 1);
    request.snapshots = Written(reply.snapshots);
    snapshots().Take(request, At());
  }
  /// Another process takes the server's place, and restores the partitions.
  void Restore() {
    owner_ = owner_.Next();
    snapshots().Replay(books().partitions.ServerReplaced(ServerId(0), owner_), "test", At());
    books().partitions.Reported(ServerId(0), owner_, ServerCall(owner_, 1).owned);
  }
  ShardState StateOf(uint64_t index) { return books().ledger.queue().StateOf(TrainShard(index)); }

 private:
  ServerIncarnation owner_{5};
};

TEST_F(GroupTablesTest, AShardIsCommittedByACheckpointAndASnapshot) {
  Restore();
  Push(0, Now());
  Push(1, Now());
  Snapshot();
  EXPECT_EQ(StateOf(0), ShardState::kDone) << "no checkpoint has it";
  shards->Checkpointed(1);
  EXPECT_EQ(StateOf(0), ShardState::kCommitted);
  EXPECT_EQ(StateOf(1), ShardState::kDone);
  Push(2, Now());
  shards->Checkpointed(0);
  EXPECT_EQ(StateOf(1), ShardState::kCommitted);
  EXPECT_EQ(StateOf(2), ShardState::kDone) << "no snapshot has it";
  Snapshot();
  EXPECT_EQ(StateOf(2), ShardState::kCommitted);
}

TEST_F(GroupTablesTest, AStepThatNoSnapshotHasIsReplayedAfterARestore) {
  Restore();
  Push(0, Now());
  Snapshot();
  Push(1, Now());
  Restore();
  EXPECT_EQ(StateOf(1), ShardState::kDone) << "the dense state has it";
  EXPECT_EQ(books().totals.replayed_shards, 1u);
  const std::optional<StepData> next = shards->Next();
  EXPECT_EQ(next->shard, TrainShard(1));
  EXPECT_TRUE(next->replay);
  EXPECT_TRUE(shards->IsOpen(TrainShard(1)));
  EXPECT_FALSE(shards->IsOpen(TrainShard(0)));
  shards->Checkpointed(0);
  Snapshot();
  EXPECT_EQ(StateOf(0), ShardState::kCommitted);
  EXPECT_EQ(StateOf(1), ShardState::kDone) << "the snapshot lacks what is to be replayed";
  shards->Replayed(TrainShard(1), Now());
  EXPECT_FALSE(shards->IsOpen(TrainShard(1)));
  EXPECT_EQ(shards->Next()->shard, TrainShard(2));
  EXPECT_EQ(StateOf(1), ShardState::kDone) << "no snapshot has what was replayed";
  Snapshot();
  EXPECT_EQ(StateOf(1), ShardState::kCommitted);
}

TEST_F(GroupTablesTest, WhatWasPushedBeforeARestoreIsReplayed) {
  Restore();
  const RestoreEpoch before = Now();
  Restore();
  Push(0, before);
  EXPECT_TRUE(shards->Next()->replay);
  shards->Replayed(TrainShard(0), before);
  EXPECT_TRUE(shards->Next()->replay) << "some of it may be lost again";
  shards->Replayed(TrainShard(0), Now());
  EXPECT_FALSE(shards->Next()->replay);
  Push(1, RestoreEpoch());
  EXPECT_FALSE(shards->Next()->replay) << "it has pushed nothing";
}

TEST_F(GroupTablesTest, AReplayIsReplayedAgainIfItsSnapshotDoesNotHaveIt) {
  Restore();
  Push(0, Now());
  Restore();
  shards->Replayed(TrainShard(0), Now());
  Restore();
  EXPECT_TRUE(shards->Next()->replay);
  shards->Replayed(TrainShard(0), Now());
  Snapshot();
  Restore();
  EXPECT_FALSE(shards->Next()->replay) << "the snapshot has it";
}

TEST_F(GroupTablesTest, AStepThatIsUndoneIsMadeAgainAndNotReplayed) {
  Restore();
  Push(0, Now());
  Restore();
  shards->Undo(1);
  EXPECT_FALSE(shards->Next()->replay);
  EXPECT_EQ(shards->Next()->shard, TrainShard(0));
}

TEST_F(GroupTablesTest, TheJournalKnowsWhatLacksParts) {
  Restore();
  Push(0, Now());
  Push(1, Now());
  Restore();
  shards->Replayed(TrainShard(0), Now());
  DurableState journal;
  std::vector<Mutation> mutations;
  books().ledger.Collect(&mutations);
  for (const Mutation& mutation : mutations) Apply(mutation, &journal);
  journal.meta.emplace().done_seq = books().ledger.done_seq();
  Ledger after(options.datasets, journal, 10);
  EXPECT_FALSE(after.LacksParts(TrainShard(0)));
  EXPECT_TRUE(after.LacksParts(TrainShard(1)));
  EXPECT_EQ(after.pushed().SeqOf(DoneSeq(1)), DoneSeq(3));
}

TEST_F(GroupTablesTest, AReplayThatFailsTooOftenFailsTheJob) {
  Restore();
  Push(0, Now());
  Restore();
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(shards->Over());
    const LeaseToken token = shards->NewToken(TrainShard(0));
    shards->Charge(TrainShard(0), token, "worker-0", 7, "NaN");
    shards->Charge(TrainShard(0), token, "worker-1", 8, "NaN");
  }
  EXPECT_EQ(life().state(), JobState::kFailed);
  EXPECT_THAT(life().reason(), HasSubstr("failure 3 of 3: NaN. The tables lack updates"));
  EXPECT_EQ(StateOf(0), ShardState::kDone) << "the next run replays it";
}

TEST_F(GroupTablesTest, PartitionsForgetOnlyWhatNoTokenInUseMayPush) {
  Restore();
  const LeaseToken token = shards->NewToken(TrainShard(0));
  shards->Commit(TrainShard(0), token, {}, "worker-0", Now());
  shards->Checkpointed(0);
  Snapshot();
  ASSERT_EQ(StateOf(0), ShardState::kCommitted);
  leasing().TellFloor();
  EXPECT_EQ(leasing().forgetting().state().version, 0u) << "an earlier master's tokens may be used";
  shards->EndTokensBelow(token);
  leasing().TellFloor();
  EXPECT_TRUE(leasing().forgetting().state().shards.empty()) << "the step's own may be used";
  shards->EndTokensBelow(shards->NewToken(TrainShard(1)));
  leasing().TellFloor();
  EXPECT_EQ(leasing().forgetting().state().shards.size(), 1u);
}

}  // namespace
}  // namespace muster
