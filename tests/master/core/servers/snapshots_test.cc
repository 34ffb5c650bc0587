#include "master/core/servers/snapshots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kCheckSet;
using testing::kTrainSet;
using testing::kWorker;
using testing::PartsFixture;
using ::testing::SizeIs;

constexpr ServerId kSlot{0};
constexpr ServerIncarnation kOwner{5};

class SnapshotsTest : public ::testing::Test, protected PartsFixture {
 protected:
  void Serve() {
    Start();
    books().partitions.ServerReplaced(kSlot, kOwner);
    books().partitions.Reported(kSlot, kOwner, ServerCall(kOwner, 1).owned);
  }
  /// Asks for everything, in a hurry; returns the snapshots as they are written.
  std::vector<SnapshotReport> Ask() {
    snapshots().Ask(kSlot, kOwner, {.all = true}, now);
    ServerExchangeReply reply;
    books().partitions.FillCommands(kSlot, kOwner, &reply);
    return Written(reply.snapshots);
  }
  void Take(std::vector<SnapshotReport> reports) {
    ServerExchangeRequest request = ServerCall(kOwner, 1);
    request.snapshots = std::move(reports);
    snapshots().Take(request, At());
  }
};

TEST_F(SnapshotsTest, WhatEveryPartitionHasIsCommittedByTheLastOfThem) {
  Serve();
  books().nodes.FindOrAdd(kWorker.name, NodeRole::kWorker, leasing().table());
  TrainOne();
  const std::vector<SnapshotReport> written = Ask();
  ASSERT_THAT(written, SizeIs(2));
  Take({written[0]});
  EXPECT_EQ(books().ledger.commit_seq(), DoneSeq());
  Take({written[1]});
  EXPECT_EQ(books().ledger.commit_seq(), DoneSeq(1));
  EXPECT_EQ(books().totals.snapshots_accepted, 2u);
  EXPECT_EQ(books().nodes.Find(kWorker.name)->record.records_committed, 10u);
}

TEST_F(SnapshotsTest, UntilTheFirstCommitTurnsComeSooner) {
  using namespace std::chrono_literals;
  for (const auto& [interval, first] :
       {std::pair(10s, 2s), std::pair(60s, 6s), std::pair(1s, 1s)}) {
    SCOPED_TRACE(interval.count());
    options.snapshot_interval = interval;
    const auto asked_after = [&](std::chrono::nanoseconds time) {
      Serve();
      TrainOne();
      Pass(time);
      snapshots().Ask(kSlot, kOwner, {}, now);
      ServerExchangeReply reply;
      books().partitions.FillCommands(kSlot, kOwner, &reply);
      return reply.snapshots.size();
    };
    EXPECT_LT(asked_after(first / 2), 2u);
    EXPECT_EQ(asked_after(first), 2u) << "every partition had its turn";
  }
}

TEST_F(SnapshotsTest, AFewShardsAreCommittedAtOnceAndTheOthersLater) {
  options.limits.commits_at_once = 2;
  Serve();
  books().nodes.FindOrAdd(kWorker.name, NodeRole::kWorker, leasing().table());
  for (int i = 0; i < 3; ++i) TrainOne();
  Take(Ask());
  EXPECT_EQ(books().ledger.commit_seq(), DoneSeq(2));
  EXPECT_EQ(books().ledger.queue().committed_count(), 2u);
  EXPECT_EQ(books().nodes.Find(kWorker.name)->record.records_committed, 20u);
  EXPECT_EQ(books().ledger.RecordsCommitted(DatasetId(0), EpochIndex(0)), 20u);
  // The shards that one partition lost meanwhile are after the cut of the snapshots.
  snapshots().Replay({.partitions = 1, .replay_after = DoneSeq(3)}, "lost", At());
  EXPECT_EQ(books().ledger.queue().done().size(), 1u);
  snapshots().Commit(At());
  EXPECT_EQ(books().ledger.commit_seq(), DoneSeq(3));
  EXPECT_EQ(books().ledger.queue().committed_count(), 3u);
  EXPECT_EQ(books().nodes.Find(kWorker.name)->record.records_committed, 30u);
}

TEST_F(SnapshotsTest, AnEpochIsCommittedWhenItsLastShardIs) {
  options.limits.commits_at_once = 3;
  Serve();
  for (int i = 0; i < 4; ++i) TrainOne();
  Take(Ask());
  EXPECT_THAT(Events("epoch-committed"), IsEmpty());
  snapshots().Commit(At());
  EXPECT_THAT(Events("epoch-committed"),
              ElementsAre(": epoch 1 of dataset 'train': 4 shards, 40 records"));
}

TEST_F(SnapshotsTest, OneEventNamesAllNeighbours) {
  options.datasets.resize(1);
  options.datasets[0].epochs = 4;
  options.datasets[0].shards = 2;
  options.datasets[0].records = 20;
  Serve();
  for (int i = 0; i < 5; ++i) TrainOne();
  Take(Ask());
  EXPECT_THAT(Events("epoch-committed"),
              ElementsAre(": epochs 1 to 2 of dataset 'train': 4 shards, 40 records"));
  TrainOne();
  Take(Ask());
  EXPECT_THAT(Events("epoch-committed"),
              ElementsAre(::testing::_, ": epoch 3 of dataset 'train': 2 shards, 20 records"));
}

TEST_F(SnapshotsTest, AStreamIsNoWholeEpochBeforeItsEnd) {
  options.datasets[0].shards = options.datasets[0].records = 0;
  options.datasets[0].stream =
      StreamPlan{"clicks", {.minibatch_size = 5, .minibatches_per_shard = 2}};
  Serve();
  streams().See({.dataset = kTrainSet, .partitions = {{TopicPartition(0), 0, 10}}}, At());
  TrainOne();
  Take(Ask());
  EXPECT_EQ(books().ledger.queue().committed_count(), 1u);
  EXPECT_THAT(Events("epoch-committed"), IsEmpty()) << "all shards so far, but more will come";
}

TEST_F(SnapshotsTest, TheLastCommitIsTheEndOfTheJob) {
  options.datasets.resize(1);
  Serve();
  for (int i = 0; i < 4; ++i) TrainOne();
  Take(Ask());
  EXPECT_EQ(life().state(), JobState::kSucceeded);
  EXPECT_THAT(Events("epoch-committed"), SizeIs(1));
}

TEST_F(SnapshotsTest, FilesThatNoManifestNamesAreGivenOnce) {
  Serve();
  TrainOne();
  const std::vector<SnapshotReport> first = Ask();
  Take(first);
  EXPECT_THAT(snapshots().TakeUnusedFiles(), IsEmpty());
  TrainOne();
  Take(Ask());
  EXPECT_THAT(snapshots().TakeUnusedFiles(),
              ElementsAre(first[0].manifest.files[0].name, first[1].manifest.files[0].name));
  EXPECT_THAT(snapshots().TakeUnusedFiles(), IsEmpty());
}

TEST_F(SnapshotsTest, WhatNobodyLostIsNoEvent) {
  Serve();
  TrainOne();
  snapshots().Replay({}, "nothing happened", At());
  EXPECT_THAT(Events("partitions-restored"), IsEmpty());
  EXPECT_THAT(books().ledger.queue().done(), SizeIs(1));
}

TEST_F(SnapshotsTest, OnePartitionIsRestoredAndTwoAre) {
  Serve();
  const auto restored = [&](uint32_t partitions) {
    snapshots().Replay({.partitions = partitions, .replay_after = books().ledger.done_seq()},
                       "a death", At());
    return Events("partitions-restored").back();
  };
  EXPECT_THAT(restored(1), HasSubstr(": 1 partition starts without a snapshot, 0 DONE"));
  EXPECT_THAT(restored(2), HasSubstr(": 2 partitions start without a snapshot, 0 DONE"));
  TrainOne();
  Take(Ask());
  EXPECT_THAT(restored(1), HasSubstr(": 1 partition is restored from its snapshot, 0 DONE"));
  EXPECT_THAT(restored(2), HasSubstr(": 2 partitions are restored from their snapshots, 0 DONE"));
}

TEST_F(SnapshotsTest, AReplayCountsTheShardsTheirMinibatchesAndTheEvaluationsThatEnd) {
  Serve();
  for (int i = 0; i < 4; ++i) TrainOne();
  ASSERT_EQ(Grant(1).at(0).shard.dataset, kCheckSet);
  snapshots().Replay(books().partitions.ServerReplaced(kSlot, ServerIncarnation(6)), "a death",
                     At());
  EXPECT_EQ(books().totals.replayed_shards, 4u);
  EXPECT_EQ(books().totals.redelivered_minibatches, 8u);
  EXPECT_EQ(leasing().table().size(), 0u);
  EXPECT_THAT(Events("partitions-restored"),
              ElementsAre(": a death: 2 partitions start without a snapshot, 4 DONE shards run "
                          "again, 1 evaluate shard begins again afterwards (restore epoch 2)"));
}

TEST_F(SnapshotsTest, NoSnapshotIsAskedForBeforeItsTimeButToAGoal) {
  Serve();
  Take(Ask());
  TrainOne();
  const auto asked = [&](Snapshots::Hurry hurry) {
    snapshots().Ask(kSlot, kOwner, hurry, now);
    ServerExchangeReply reply;
    books().partitions.FillCommands(kSlot, kOwner, &reply);
    return reply.snapshots.size();
  };
  EXPECT_EQ(asked({}), 0u);
  EXPECT_EQ(asked({.goal = DoneSeq(1)}), 2u);
}

}  // namespace
}  // namespace muster
