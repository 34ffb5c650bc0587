#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

TEST_F(OwnedPartitionsTest, ServesExactlyTheEpochThatItOwns) {
  EXPECT_EQ(Push(1, 7, 1).code, PartCode::kWrongOwner);
  OwnEmpty(3);
  EXPECT_EQ(Push(2, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_EQ(Push(3, 7, 1).code, PartCode::kOk);
  EXPECT_EQ(Pull(2, {7}).parts.at(0).code, PartCode::kWrongOwner);
  EXPECT_EQ(Row(3, 7), 1);
  EXPECT_EQ(PushTo(0, 0, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_EQ(PushTo(1, 3, 7, 1).code, PartCode::kWrongOwner) << "of the other lane";
  EXPECT_EQ(PushTo(6, 3, 7, 1).code, PartCode::kWrongOwner) << "beyond the job's partitions";
  const LaneReport report = owned_.Report(1);
  ASSERT_THAT(report.owned, SizeIs(1));
  EXPECT_EQ(report.owned[0].partition, kP);
  EXPECT_EQ(report.owned[0].epoch, OwnerEpoch(3));
  EXPECT_EQ(report.counters.parts_applied, 1u);
  EXPECT_EQ(report.counters.parts_wrong_owner, 6u);
  EXPECT_EQ(report.counters.rows, 1u);
}

TEST_F(OwnedPartitionsTest, CommandsForOtherLanesAreDropped) {
  Own({PartitionId(1), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  Own({PartitionId(600), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  EXPECT_THAT(owned_.Report(1).owned, IsEmpty());
}

TEST_F(OwnedPartitionsTest, ARepeatedOwnChangesNothing) {
  OwnEmpty(3);
  Push(3, 7, 1);
  OwnEmpty(3);
  EXPECT_EQ(Row(3, 7), 1);
  EXPECT_TRUE(Push(3, 7, 1).skipped);
}

TEST_F(OwnedPartitionsTest, ALateOwnOfAnOlderEpochChangesNothing) {
  OwnEmpty(5);
  Push(5, 7, 1);
  OwnFromSnapshot(4);
  EXPECT_THAT(owned_.TakeLoads(now_), IsEmpty());
  EXPECT_EQ(Row(5, 7), 1);
}

TEST_F(OwnedPartitionsTest, ALateOwnDoesNotReviveWhatANewerOneFoundMissing) {
  Own({kP, OwnerEpoch(5), OwnerEpoch(4), {}, false, {}});
  OwnEmpty(4);
  OwnFromSnapshot(4);
  EXPECT_THAT(owned_.TakeLoads(now_), IsEmpty());
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_THAT(owned_.Report(1).missing, SizeIs(1));
}

TEST_F(OwnedPartitionsTest, ARepeatedOwnKeepsTheSnapshotUnderWay) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(10, 4, 3);
  ASSERT_TRUE(NextSnapshot(now_).has_value());
  OwnEmpty(3);
  owned_.Written(kP, Number(10), SnapshotFile{"base", 100}, now_);
  EXPECT_THAT(owned_.Report(1).snapshots, SizeIs(1));
}

TEST_F(OwnedPartitionsTest, AStateSinceTheNamedEpochIsKept) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Own({kP, OwnerEpoch(4), OwnerEpoch(3), {}, false, {}});
  EXPECT_EQ(Push(3, 7, 1, 1).code, PartCode::kWrongOwner);
  EXPECT_EQ(Row(4, 7), 1);
  EXPECT_TRUE(Push(4, 7, 1).skipped);
}

TEST_F(OwnedPartitionsTest, ALoadingPartitionKeepsItsLoadWhenTheEpochMovesOn) {
  OwnFromSnapshot(3);
  const auto loads = owned_.TakeLoads(now_);
  Own({kP, OwnerEpoch(4), OwnerEpoch(3), {}, false, {}});
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kRetry);
  owned_.Loaded(loads.at(0).id, LoadedPartition(), now_);
  EXPECT_EQ(Row(4, 7), 70);
}

TEST_F(OwnedPartitionsTest, ARestoreDropsTheOldStateAndLoadsTheManifest) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Push(3, 8, 1, 1);
  OwnFromSnapshot(4);
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kRetry);
  EXPECT_EQ(Pull(4, {7}).parts.at(0).code, PartCode::kRetry);
  EXPECT_EQ(Push(3, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_THAT(owned_.Report(1).owned, IsEmpty()) << "the master asks on until it is loaded";

  const auto loads = owned_.TakeLoads(now_);
  ASSERT_THAT(loads, SizeIs(1));
  EXPECT_EQ(loads[0].partition, kP);
  EXPECT_EQ(loads[0].manifest, FromSnapshot(4).manifest);
  OwnFromSnapshot(4);
  EXPECT_THAT(owned_.TakeLoads(now_), IsEmpty()) << "a repeat must not load twice";

  owned_.Loaded(loads[0].id, LoadedPartition(), now_);
  EXPECT_EQ(Row(4, 7), 70);
  EXPECT_EQ(Row(4, 8), 0);
  const LaneReport report = owned_.Report(2);
  ASSERT_THAT(report.owned, SizeIs(1));
  EXPECT_EQ(report.owned[0].accepted, Number(5));
  EXPECT_EQ(report.counters.partitions_restored, 1u);
}

TEST_F(OwnedPartitionsTest, ALoadOfASupersededEpochIsDropped) {
  OwnFromSnapshot(4);
  const auto first = owned_.TakeLoads(now_);
  OwnFromSnapshot(5);
  const auto second = owned_.TakeLoads(now_);
  owned_.Loaded(first.at(0).id, LoadedPartition(), now_);
  EXPECT_EQ(Push(5, 7, 1).code, PartCode::kRetry);
  owned_.Loaded(second.at(0).id, LoadedPartition(), now_);
  EXPECT_EQ(Row(5, 7), 70);
}

TEST_F(OwnedPartitionsTest, AFailedLoadIsReportedAndTriedAgainAfterAPause) {
  OwnFromSnapshot(4);
  const auto loads = owned_.TakeLoads(now_);
  owned_.Loaded(loads.at(0).id, absl::DataLossError("file x is damaged"), now_);
  EXPECT_TRUE(owned_.HasNews());
  EXPECT_EQ(owned_.Report(1).restore_error, "file x is damaged");
  EXPECT_EQ(owned_.Report(1).snapshot_error, "") << "no disk is full";
  EXPECT_THAT(owned_.TakeLoads(now_ + milliseconds(99)), IsEmpty());
  const auto again = owned_.TakeLoads(now_ + milliseconds(100));
  ASSERT_THAT(again, SizeIs(1));
  owned_.Loaded(again[0].id, LoadedPartition(), now_);
  EXPECT_EQ(owned_.Report(2).restore_error, "");
  EXPECT_EQ(Row(4, 7), 70);
}

TEST_F(OwnedPartitionsTest, OnePartitionsLoadDoesNotHideTheErrorOfAnother) {
  OwnFromSnapshot(4);
  OwnCommand other = FromSnapshot(4);
  other.partition = PartitionId(4);
  Own(other);
  const auto loads = owned_.TakeLoads(now_);
  ASSERT_THAT(loads, SizeIs(2));
  owned_.Loaded(loads[0].id, absl::DataLossError("file x is damaged"), now_);
  owned_.Loaded(loads[1].id, std::make_unique<Partition>(PartitionId(4), 1), now_);
  EXPECT_EQ(owned_.Report(1).restore_error, "file x is damaged");
  OwnEmpty(5);
  EXPECT_EQ(owned_.Report(2).restore_error, "") << "that file is no longer wanted";
}

TEST_F(OwnedPartitionsTest, AStateThatIsNowhereIsMissingUntilTheMasterDecides) {
  Own({kP, OwnerEpoch(4), OwnerEpoch(3), {}, false, {}});
  EXPECT_TRUE(owned_.HasNews());
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kWrongOwner);
  for (uint64_t sequence : {1, 2}) {
    const LaneReport report = owned_.Report(sequence);
    ASSERT_THAT(report.missing, SizeIs(1));
    EXPECT_EQ(report.missing[0].epoch, OwnerEpoch(4));
  }
  OwnEmpty(5);
  EXPECT_THAT(owned_.Report(3).missing, IsEmpty());
  EXPECT_EQ(Push(5, 7, 1).code, PartCode::kOk);
}

TEST_F(OwnedPartitionsTest, TooOldAStateIsMissingNotKept) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Own({kP, OwnerEpoch(6), OwnerEpoch(5), {}, false, {}});
  EXPECT_THAT(owned_.Report(1).missing, SizeIs(1));
  EXPECT_EQ(Push(6, 7, 1).code, PartCode::kWrongOwner);
}

TEST_F(OwnedPartitionsTest, TheFloorReachesPartitionsThatComeLater) {
  OwnEmpty(3);
  Forget(20);
  EXPECT_EQ(Push(3, 7, 1, 0, 19).code, PartCode::kStaleLease);
  EXPECT_EQ(Push(3, 7, 1, 0, 20).code, PartCode::kOk);
  OwnFromSnapshot(4);
  owned_.Loaded(owned_.TakeLoads(now_).at(0).id, LoadedPartition(), now_);
  EXPECT_EQ(Push(4, 7, 1, 0, 19).code, PartCode::kStaleLease);
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
