#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

TEST_F(OwnedPartitionsTest, ASnapshotIsReportedWholeUntilItIsAccepted) {
  OwnEmpty(3);
  Push(3, 7, 1);
  owned_.Report(1);
  Ask(10, 4, 3);
  const auto job = NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->image.kind, SnapshotKind::kBase);
  EXPECT_THAT(job->image.rows, SizeIs(1));
  EXPECT_EQ(job->number, Number(10));
  Ask(10, 4, 3);
  EXPECT_FALSE(NextSnapshot(now_).has_value()) << "the same command, asked again";
  EXPECT_THAT(owned_.Report(2).snapshots, IsEmpty()) << "not written yet";

  owned_.Written(kP, Number(10), SnapshotFile{"base", 100}, now_);
  EXPECT_TRUE(owned_.HasNews());
  for (uint64_t sequence : {3, 4}) {
    const LaneReport report = owned_.Report(sequence);
    ASSERT_THAT(report.snapshots, SizeIs(1));
    EXPECT_EQ(report.snapshots[0].manifest,
              (Manifest{Number(10), DoneSeq(4), {{"base", 100, Number(10)}}}));
    EXPECT_EQ(report.snapshots[0].epoch, OwnerEpoch(3));
  }
  Accept(10);
  const LaneReport report = owned_.Report(5);
  EXPECT_THAT(report.snapshots, IsEmpty());
  EXPECT_EQ(report.owned.at(0).accepted, Number(10));
  EXPECT_EQ(report.counters.snapshots, 1u);
  EXPECT_EQ(report.counters.snapshot_bytes, 100u);
}

TEST_F(OwnedPartitionsTest, OnePartitionsWriteDoesNotHideTheErrorOfAnother) {
  OwnEmpty(3);
  Own({PartitionId(4), OwnerEpoch(3), OwnerEpoch(3), {}, true, {}});
  Push(3, 7, 1);
  PushTo(4, 3, 7, 1);
  LaneCommands commands;
  commands.snapshots = {{kP, OwnerEpoch(3), DoneSeq(1), Number(10)},
                        {PartitionId(4), OwnerEpoch(3), DoneSeq(1), Number(11)}};
  Apply(commands);
  ASSERT_TRUE(NextSnapshot(now_).has_value());
  ASSERT_TRUE(NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(10), absl::ResourceExhaustedError("disk full"), now_);
  owned_.Written(PartitionId(4), Number(11), SnapshotFile{"f11", 100}, now_);
  EXPECT_EQ(owned_.Report(++sequence_).snapshot_error, "disk full");
  ASSERT_TRUE(NextSnapshot(now_ + milliseconds(100)).has_value());
  owned_.Written(kP, Number(10), SnapshotFile{"f10", 100}, now_);
  EXPECT_EQ(owned_.Report(++sequence_).snapshot_error, "");
}

TEST_F(OwnedPartitionsTest, WhoeverWaitsLongestIsNext) {
  for (const uint32_t id : {0u, 2u, 4u}) {
    Own({PartitionId(id), OwnerEpoch(3), OwnerEpoch(3), {}, true, {}});
    PushTo(id, 3, 7, 1);
  }
  const auto ask = [&](uint32_t id, uint64_t number) {
    LaneCommands commands;
    commands.snapshots = {{PartitionId(id), OwnerEpoch(3), DoneSeq(1), Number(number)}};
    Apply(commands);
  };
  const auto next = [&] {
    const auto job = NextSnapshot(now_);
    return job.has_value() ? job->number : Number(0);
  };
  ask(4, 10);
  ask(2, 11);
  ask(0, 12);
  ask(4, 13);
  EXPECT_EQ(next(), Number(13)) << "asked again, it keeps its place";
  owned_.Written(PartitionId(4), Number(13), absl::ResourceExhaustedError("disk full"), now_);
  now_ += milliseconds(100);
  EXPECT_EQ(next(), Number(11));
  EXPECT_EQ(next(), Number(12));
  EXPECT_EQ(next(), Number(13)) << "what failed is tried again last";
}

TEST_F(OwnedPartitionsTest, AnUnchangedPartitionReportsItsCutWithoutAFile) {
  OwnEmpty(3);
  Push(3, 7, 1);
  SnapshotAccepted(10, 3);
  Ask(11, 8, 3);
  EXPECT_FALSE(NextSnapshot(now_).has_value());
  const LaneReport report = owned_.Report(2);
  ASSERT_THAT(report.snapshots, SizeIs(1));
  EXPECT_EQ(report.snapshots[0].manifest,
            (Manifest{Number(11), DoneSeq(8), {{"f10", 100, Number(10)}}}));
  Accept(11);
  Push(3, 8, 1, 1);
  Ask(12, 9, 3);
  const auto job = NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->image.kind, SnapshotKind::kDelta);
  EXPECT_THAT(job->image.rows.at(0).keys, ElementsAre(8));
  owned_.Written(kP, Number(12), SnapshotFile{"delta", 5}, now_);
  EXPECT_EQ(
      owned_.Report(3).snapshots.at(0).manifest,
      (Manifest{Number(12), DoneSeq(9), {{"f10", 100, Number(10)}, {"delta", 5, Number(12)}}}));
}

TEST_F(OwnedPartitionsTest, AFailedWriteKeepsItsRowsAndRests) {
  OwnEmpty(3);
  Push(3, 7, 1);
  SnapshotAccepted(10, 3);
  Push(3, 8, 1, 1);
  Ask(11, 8, 3);
  ASSERT_TRUE(NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(11), absl::ResourceExhaustedError("disk full: /snap"), now_);
  EXPECT_EQ(owned_.Report(2).snapshot_error, "disk full: /snap");
  EXPECT_EQ(owned_.Report(2).restore_error, "") << "nothing was lost";
  EXPECT_THAT(owned_.Report(2).snapshots, IsEmpty());
  EXPECT_FALSE(NextSnapshot(now_ + milliseconds(99)).has_value());
  const auto job = NextSnapshot(now_ + milliseconds(100));
  ASSERT_TRUE(job.has_value());
  EXPECT_THAT(job->image.rows.at(0).keys, ElementsAre(8));
  owned_.Written(kP, Number(11), SnapshotFile{"delta", 5}, now_);
  EXPECT_EQ(owned_.Report(3).snapshot_error, "");
}

TEST_F(OwnedPartitionsTest, ASnapshotThatWasRefusedDoesNotTakeItsRowsWithIt) {
  OwnEmpty(3);
  Push(3, 7, 1);
  SnapshotAccepted(10, 3);
  Push(3, 8, 1, 1);
  Ask(11, 8, 3);
  ASSERT_TRUE(NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(11), SnapshotFile{"refused", 5}, now_);
  Push(3, 9, 1, 2);
  owned_.Report(7);
  Ask(12, 9, 3, /*sequence=*/6);
  EXPECT_FALSE(NextSnapshot(now_).has_value()) << "asked before the report came: it waits";
  Ask(13, 9, 3, /*sequence=*/7);
  const auto job = NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->number, Number(13));
  EXPECT_THAT(job->image.rows.at(0).keys, ::testing::UnorderedElementsAre(8, 9));
  owned_.Written(kP, Number(13), SnapshotFile{"delta", 5}, now_);
  EXPECT_THAT(
      owned_.Report(8).snapshots.at(0).manifest.files,
      ElementsAre(SnapshotFile{"f10", 100, Number(10)}, SnapshotFile{"delta", 5, Number(13)}));
}

TEST_F(OwnedPartitionsTest, AWaitingCommandRunsWhenTheOneBeforeItIsAccepted) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(11, 8, 3);
  ASSERT_TRUE(NextSnapshot(now_).has_value());
  Ask(12, 9, 3);
  EXPECT_FALSE(NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(11), SnapshotFile{"base", 5}, now_);
  owned_.Report(1);
  Push(3, 8, 1, 1);
  Accept(11);
  const auto job = NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->number, Number(12));
  EXPECT_THAT(job->image.rows.at(0).keys, ElementsAre(8));
}

TEST_F(OwnedPartitionsTest, CommandsOfAnotherEpochOrAnOlderNumberTakeNoSnapshot) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(10, 4, 2);
  Ask(10, 4, 4);
  EXPECT_FALSE(NextSnapshot(now_).has_value());
  SnapshotAccepted(10, 3);
  Push(3, 8, 1, 1);
  Ask(9, 5, 3);
  Ask(10, 5, 3);
  EXPECT_FALSE(NextSnapshot(now_).has_value());
}

TEST_F(OwnedPartitionsTest, ANewEpochDropsTheSnapshotsOfTheOldOne) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(10, 4, 3);
  ASSERT_TRUE(NextSnapshot(now_).has_value());
  Own({kP, OwnerEpoch(4), OwnerEpoch(3), {}, false, {}});
  owned_.Written(kP, Number(10), SnapshotFile{"old", 5}, now_);
  EXPECT_THAT(owned_.Report(1).snapshots, IsEmpty());
  Ask(11, 5, 4);
  const auto job = NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->epoch, OwnerEpoch(4));
  EXPECT_THAT(job->image.rows.at(0).keys, ElementsAre(7));
}

TEST_F(OwnedPartitionsTest, AnUnknownAcceptedSnapshotMakesTheNextOneABase) {
  OwnEmpty(3);
  Push(3, 7, 1);
  SnapshotAccepted(10, 3);
  Accept(15);
  Ask(16, 5, 3);
  const auto job = NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->image.kind, SnapshotKind::kBase);
  owned_.Written(kP, Number(16), SnapshotFile{"base", 5}, now_);
  EXPECT_THAT(owned_.Report(2).snapshots.at(0).manifest.files,
              ElementsAre(SnapshotFile{"base", 5, Number(16)}));
  Accept(16);
  Push(3, 8, 1, 1);
  Ask(17, 5, 3);
  EXPECT_EQ(NextSnapshot(now_)->image.kind, SnapshotKind::kDelta);
}

TEST_F(OwnedPartitionsTest, ARepeatedCommandOfANewMasterReplacesASnapshotItHasRefused) {
  OwnEmpty(1);
  Push(1, 7, 1);
  Ask(1, 0, 1, 1);
  const std::optional<SnapshotJob> before = NextSnapshot(now_);
  ASSERT_TRUE(before.has_value());
  // The master restarts and asks again while the image is being written.
  Ask(2, 0, 1, 2);
  owned_.Written(kP, before->number, SnapshotFile{"old", 1}, now_);
  EXPECT_THAT(owned_.Report(3).snapshots, SizeIs(1));
  // Its answer to that report repeats the command: what was reported will never be accepted.
  Ask(2, 0, 1, 3);
  const std::optional<SnapshotJob> after = NextSnapshot(now_);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->number, Number(2));
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
