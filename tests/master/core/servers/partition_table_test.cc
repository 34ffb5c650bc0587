#include "master/core/servers/partition_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr ServerId kServer(0);
constexpr ServerIncarnation kProcess(5);

TimePoint At(int second) {
  return TimePoint(seconds(second));
}

/// Three partitions on one server whose first process serves them. Their turns to be snapshotted
/// come every 12 seconds: that of partition i at second 4 * i.
class PartitionTableTest : public ::testing::Test {
 protected:
  PartitionTableTest() { Begin({0, 0, 0}); }
  /// Partition i has a snapshot of an earlier master that holds what was DONE up to cuts[i].
  void Begin(const std::vector<uint64_t>& cuts) {
    DurableState state;
    for (uint32_t i = 0; i < cuts.size(); ++i) {
      const SnapshotNumber number(MasterIncarnation(1), i + 1);
      if (cuts[i] == 0) continue;
      state.partitions[PartitionId(i)] = {
          PartitionId(i), {}, {number, DoneSeq(cuts[i]), {{ToString(number), 1, number}}}};
    }
    table_ = PartitionTable(3, MasterIncarnation(2), state, At(0));
    restored_ = table_.BeginRun(1);
    EXPECT_EQ(table_.ServerReplaced(kServer, kProcess).partitions, 0u) << "no process was replaced";
    Serve();
  }
  std::vector<OwnedPartition> Owned() const {
    std::vector<OwnedPartition> owned;
    for (uint32_t id = 0; id < table_.size(); ++id) {
      owned.push_back({PartitionId(id), table_.entry(PartitionId(id)).epoch, {}});
    }
    return owned;
  }
  bool Serve() { return table_.Reported(kServer, kProcess, Owned()); }
  /// The snapshots that are requested from the server.
  std::vector<SnapshotCommand> Ask(int second, uint64_t done_seq,
                                   PartitionTable::Schedule schedule = {}) {
    schedule.done_seq = DoneSeq(done_seq);
    schedule.now = At(second);
    schedule.interval = seconds(12);
    schedule.timeout = seconds(30);
    table_.AskSnapshots(kServer, kProcess, schedule);
    ServerExchangeReply reply;
    table_.FillCommands(kServer, kProcess, &reply);
    return reply.snapshots;
  }
  bool Accept(const SnapshotCommand& command, std::vector<SnapshotFile> files, DoneSeq done_seq) {
    return table_.Accept(
        kServer, kProcess,
        {command.partition, command.epoch, {command.number, command.cut, std::move(files)}},
        {done_seq, At(50)}, &unused_);
  }
  void Snapshot(const SnapshotCommand& command) {
    EXPECT_TRUE(Accept(command, {{ToString(command.number), 1, command.number}}, command.cut));
  }
  static std::vector<uint32_t> PartitionsOf(const std::vector<SnapshotCommand>& commands) {
    std::vector<uint32_t> partitions;
    for (const SnapshotCommand& command : commands) {
      partitions.push_back(command.partition.value());
    }
    return partitions;
  }

  PartitionTable table_{3, MasterIncarnation(2), DurableState(), At(0)};
  PartitionTable::Restored restored_;  // when the run began
  std::vector<std::string> unused_;
};

TEST_F(PartitionTableTest, WithoutServersNothingIsPlaced) {
  table_ = PartitionTable(3, MasterIncarnation(2), {}, At(0));
  EXPECT_EQ(table_.BeginRun(0).partitions, 0u);
  for (uint32_t id = 0; id < 3; ++id) {
    EXPECT_EQ(table_.entry(PartitionId(id)).epoch, OwnerEpoch());
    EXPECT_FALSE(table_.SeenOf(PartitionId(id)).serving);
  }
}

TEST_F(PartitionTableTest, SnapshotsAreSpreadOverTheInterval) {
  EXPECT_THAT(PartitionsOf(Ask(3, 1)), IsEmpty());
  for (const auto& [second, partition] : {std::pair(4, 1u), {8, 2u}, {12, 0u}, {16, 1u}}) {
    const std::vector<SnapshotCommand> asked = Ask(second, static_cast<uint64_t>(second));
    ASSERT_THAT(PartitionsOf(asked), ElementsAre(partition)) << second;
    EXPECT_EQ(asked[0].cut, DoneSeq(static_cast<uint64_t>(second)));
    Snapshot(asked[0]);
    EXPECT_THAT(Ask(second + 3, 100), IsEmpty()) << "until the next one's turn";
  }
  EXPECT_EQ(table_.MinCut(), DoneSeq(8)) << "of the one whose turn is next";
}

TEST_F(PartitionTableTest, WhoMissedATurnIsAskedAtOnce) {
  EXPECT_THAT(PartitionsOf(Ask(13, 0)), IsEmpty()) << "nothing is DONE";
  EXPECT_THAT(PartitionsOf(Ask(15, 1)), ElementsAre(0, 1, 2));
}

TEST_F(PartitionTableTest, TurnsStayAsTheyWereWhenAllAreAskedAtOnce) {
  for (const SnapshotCommand& command : Ask(6, 1, {.urgent = true})) Snapshot(command);
  EXPECT_EQ(table_.MinCut(), DoneSeq(1));
  EXPECT_THAT(PartitionsOf(Ask(7, 2)), IsEmpty());
  EXPECT_THAT(PartitionsOf(Ask(8, 2)), ElementsAre(2));
}

TEST_F(PartitionTableTest, WhileShardsAreTrainedAllHaveTheirTurnsThoughNothingIsDone) {
  EXPECT_THAT(PartitionsOf(Ask(4, 0, {.training = true})), ElementsAre(1));
  EXPECT_THAT(PartitionsOf(Ask(8, 0, {.training = true})), ElementsAre(1, 2));
}

TEST_F(PartitionTableTest, SnapshotsAreAskedForAgainAfterTheTimeout) {
  EXPECT_THAT(Ask(12, 0), IsEmpty()) << "nothing is DONE since";
  const std::vector<SnapshotCommand> first = Ask(12, 1);
  ASSERT_THAT(PartitionsOf(first), ElementsAre(0, 1, 2));
  EXPECT_EQ(first[0].cut, DoneSeq(1));
  EXPECT_LT(first[0].number, first[1].number);
  const std::vector<SnapshotCommand> same = Ask(41, 2);
  ASSERT_THAT(same, SizeIs(3));
  EXPECT_EQ(same[0].number, first[0].number) << "one at a time";
  EXPECT_EQ(same[0].cut, DoneSeq(1));
  const std::vector<SnapshotCommand> renewed = Ask(42, 2);
  ASSERT_THAT(renewed, SizeIs(3));
  EXPECT_GT(renewed[0].number, first[2].number);
  EXPECT_EQ(renewed[0].cut, DoneSeq(2)) << "with a newer cut";
}

TEST_F(PartitionTableTest, AHurryAsksForWhatIsBehindAlone) {
  Begin({4, 7, 9});
  EXPECT_THAT(PartitionsOf(Ask(1, 9)), IsEmpty()) << "nothing is due";
  EXPECT_EQ(table_.CountBehind(kServer, kProcess, DoneSeq(4)), 0u);
  EXPECT_EQ(table_.CountBehind(kServer, kProcess, DoneSeq(5)), 1u);
  EXPECT_EQ(table_.CountBehind(kServer, kProcess, DoneSeq(9)), 2u);
  EXPECT_EQ(table_.CountBehind(kServer, ServerIncarnation(4), DoneSeq(9)), 0u);
  EXPECT_THAT(PartitionsOf(Ask(2, 9, {.urgent_cut = DoneSeq(7)})), ElementsAre(0));
  EXPECT_THAT(PartitionsOf(Ask(3, 9, {.urgent = true})), ElementsAre(0, 1));
}

TEST_F(PartitionTableTest, TheSmallestCutIsCommitted) {
  Begin({4, 4, 0});
  EXPECT_EQ(table_.MinCut(), DoneSeq(0));
  const std::vector<SnapshotCommand> asked = Ask(12, 6);
  ASSERT_THAT(asked, SizeIs(3));
  Snapshot(asked[2]);
  EXPECT_EQ(table_.MinCut(), DoneSeq(4));
  Snapshot(asked[0]);
  EXPECT_EQ(table_.MinCut(), DoneSeq(4)) << "that of partition 1";
  Snapshot(asked[1]);
  EXPECT_EQ(table_.MinCut(), DoneSeq(6));
}

TEST_F(PartitionTableTest, WhatIsRestoredIsReplayedFromItsOwnSmallestCut) {
  Begin({4, 7, 9});
  EXPECT_EQ(restored_.partitions, 3u);
  EXPECT_EQ(restored_.replay_after, DoneSeq(4));
  const RestoreEpoch before = table_.restore_epoch();
  const MapVersion version = table_.version();
  const OwnerEpoch epoch = table_.entry(PartitionId(1)).epoch;
  table_.Told();
  PartitionTable::Restored restored = table_.Missing(kServer, kProcess, {PartitionId(1), epoch});
  EXPECT_EQ(restored.partitions, 1u);
  EXPECT_EQ(restored.replay_after, DoneSeq(7)) << "the others lost nothing";
  EXPECT_EQ(table_.restore_epoch(), before.Next());
  EXPECT_EQ(table_.version(), version.Next());
  const PartitionEntry& entry = table_.entry(PartitionId(1));
  EXPECT_EQ(entry.epoch, epoch.Next());
  EXPECT_EQ(entry.since, epoch.Next());
  EXPECT_TRUE(entry.restored);
  EXPECT_EQ(entry.restored_at, table_.restore_epoch());
  EXPECT_FALSE(table_.SeenOf(PartitionId(1)).serving);
  EXPECT_TRUE(table_.SeenOf(PartitionId(0)).serving);
  EXPECT_EQ(table_.LoadOf(kServer).owned, 3u);
  EXPECT_EQ(table_.LoadOf(kServer).serving, 2u);
  EXPECT_TRUE(Serve()) << "it is to be told again what to forget";
  EXPECT_FALSE(Serve()) << "once";
  restored = table_.ServerReplaced(kServer, ServerIncarnation(6));
  EXPECT_EQ(restored.partitions, 3u);
  EXPECT_EQ(restored.replay_after, DoneSeq(4));
  EXPECT_EQ(table_.restore_epoch(), before.Next().Next());
  EXPECT_EQ(table_.ServerReplaced(kServer, ServerIncarnation(6)).partitions, 0u) << "it has them";
}

TEST_F(PartitionTableTest, WhoDoesNotOwnAPartitionHasNotLostIt) {
  const RestoreEpoch before = table_.restore_epoch();
  const MapVersion version = table_.version();
  const OwnerEpoch epoch = table_.entry(PartitionId(1)).epoch;
  const auto missing = [&](uint32_t server, uint64_t process, uint32_t partition, OwnerEpoch of) {
    return table_
        .Missing(ServerId(server), ServerIncarnation(process), {PartitionId(partition), of})
        .partitions;
  };
  EXPECT_EQ(missing(1, 5, 1, epoch), 0u);
  EXPECT_EQ(missing(0, 4, 1, epoch), 0u);
  EXPECT_EQ(missing(0, 5, 3, epoch), 0u) << "there are three";
  EXPECT_EQ(missing(0, 5, 1, epoch.Next()), 0u);
  EXPECT_EQ(missing(0, 5, 1, OwnerEpoch()), 0u);
  EXPECT_EQ(table_.restore_epoch(), before);
  EXPECT_EQ(table_.version(), version);
}

TEST_F(PartitionTableTest, OfASnapshotThatIsAskedForTheCutIsTheOneAsked) {
  const std::vector<SnapshotCommand> asked = Ask(12, 4);
  ASSERT_THAT(asked, SizeIs(3));
  SnapshotCommand other = asked[0];
  other.cut = DoneSeq(3);
  const std::vector<SnapshotFile> files = {{"a", 1, other.number}};
  EXPECT_FALSE(Accept(other, files, DoneSeq(4)));
  EXPECT_TRUE(Accept(asked[0], files, DoneSeq(4)));
  EXPECT_EQ(table_.SeenOf(PartitionId(0)).accepted_at, At(50));
  EXPECT_EQ(table_.SeenOf(PartitionId(1)).accepted_at, std::nullopt);
  EXPECT_FALSE(Accept(asked[0], files, DoneSeq(4))) << "a repeat";
  EXPECT_THAT(PartitionsOf(Ask(13, 4)), ElementsAre(1, 2)) << "it is no longer asked for";
}

TEST_F(PartitionTableTest, EveryServerIsToldOfItsOwnPartitionsAlone) {
  constexpr ServerId kOther(1);
  constexpr ServerIncarnation kOtherProcess(6);
  table_ = PartitionTable(5, MasterIncarnation(2), DurableState(), At(0));
  table_.BeginRun(2);
  table_.ServerReplaced(kServer, kProcess);
  table_.ServerReplaced(kOther, kOtherProcess);
  const auto told = [&](ServerId server, ServerIncarnation process) {
    ServerExchangeReply reply;
    table_.FillCommands(server, process, &reply);
    std::vector<uint32_t> owns;
    for (const OwnCommand& own : reply.owns) owns.push_back(own.partition.value());
    return owns;
  };
  std::vector<uint32_t> expected[2];
  for (uint32_t id = 0; id < 5; ++id) {
    expected[table_.entry(PartitionId(id)).owner.value()].push_back(id);
  }
  EXPECT_EQ(told(kServer, kProcess), expected[0]);
  EXPECT_EQ(told(kOther, kOtherProcess), expected[1]);
  EXPECT_THAT(told(kServer, kOtherProcess), IsEmpty());
  EXPECT_THAT(told(ServerId(2), kOtherProcess), IsEmpty());
  Serve();
  EXPECT_THAT(told(kServer, kProcess), IsEmpty());
  EXPECT_EQ(told(kOther, kOtherProcess), expected[1]) << "it has not said that it serves them";
  EXPECT_EQ(table_.LoadOf(kServer).serving, expected[0].size());
  EXPECT_EQ(table_.LoadOf(kOther).owned, expected[1].size());
  EXPECT_EQ(table_.LoadOf(kOther).serving, 0u);
  EXPECT_EQ(table_.CountBehind(kOther, kOtherProcess, DoneSeq(1)), expected[1].size());
  table_.Reported(kServer, kProcess, {});
  EXPECT_EQ(told(kServer, kProcess), expected[0]) << "what it does not list it does not serve";
}

TEST_F(PartitionTableTest, FilesGoWhenNoManifestNamesThem) {
  const auto take = [&](int second, uint64_t done_seq, std::vector<SnapshotFile> files) {
    const SnapshotCommand command = Ask(second, done_seq).at(0);
    files.back().number = command.number;
    EXPECT_TRUE(Accept(command, files, DoneSeq(done_seq)));
    return table_.manifest(PartitionId(0)).files;
  };
  const auto base = take(12, 1, {{"base", 1, {}}});
  take(24, 2, {base[0], {"delta", 1, {}}});
  EXPECT_THAT(unused_, IsEmpty());
  take(36, 3, {{"base-2", 1, {}}});
  EXPECT_THAT(unused_, ElementsAre("base", "delta"));
}

TEST_F(PartitionTableTest, TheJournalKeepsOwnersAndManifests) {
  for (const SnapshotCommand& command : Ask(12, 4)) Snapshot(command);
  EXPECT_EQ(table_.manifest(PartitionId(2)).cut, DoneSeq(4));
  DurableState state;
  std::vector<Mutation> mutations;
  table_.Collect(&mutations);
  for (const Mutation& mutation : mutations) Apply(mutation, &state);
  mutations.clear();
  table_.Collect(&mutations);
  EXPECT_THAT(mutations, IsEmpty());
  state.meta.emplace();
  state.meta->map_version = table_.version();
  state.meta->restore_epoch = table_.restore_epoch();
  const PartitionTable again(3, MasterIncarnation(3), state, At(0));
  EXPECT_EQ(again.version(), table_.version());
  EXPECT_EQ(again.restore_epoch(), table_.restore_epoch());
  EXPECT_EQ(again.Entries(), table_.Entries());
  for (uint32_t id = 0; id < 3; ++id) {
    EXPECT_EQ(again.manifest(PartitionId(id)), table_.manifest(PartitionId(id)));
  }
}

}  // namespace
}  // namespace muster
