#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

TEST_F(OwnedPartitionsTest, ASnapshotIsReportedWholeUntilItIsAccepted) {
  OwnEmpty(3);
  Push(3, 7, 1);
  owned_.Report(1);
  Ask(10, 4, 3);
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->image.kind, SnapshotKind::kBase);
  EXPECT_THAT(job->image.rows, SizeIs(1));
  EXPECT_EQ(job->number, Number(10));
  Ask(10, 4, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value()) << "the same command, asked again";
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

/// The one row 1, {9, 9}, in partition 2. Counts how often rows were asked for.
class OneRow final : public WarmStartSource {
 public:
  void ForEachRow(PartitionId partition,
                  absl::FunctionRef<void(uint64_t, std::span<const float>)> row) const override {
    ++asked;
    const std::vector<float> values = {9, 9};
    if (partition == kP) row(1, values);
  }
  mutable int asked = 0;
};

TableSpec WarmTable() {
  TableSpec warm = SumTable(3);
  warm.warm_start_directory = "out";
  return warm;
}

TEST_F(OwnedPartitionsTest, TheLanesThreadTouchesNoRowOfAWarmStart) {
  const auto rows = std::make_shared<OneRow>();
  OwnEmpty(3);
  owned_.AddTable(WarmTable());
  owned_.SetWarmStart(TableId(3), rows);
  OwnEmpty(4);
  const std::vector<FillJob> fills = owned_.TakeFills();
  EXPECT_THAT(fills, SizeIs(2));
  EXPECT_THAT(owned_.TakeFills(), IsEmpty());
  auto table = Table::Filled(fills.back().table, 1, kP, *fills.back().rows);
  ASSERT_EQ(rows->asked, 1);
  owned_.Filled(fills.back(), std::move(table));
  EXPECT_EQ(rows->asked, 1);
  EXPECT_THAT(Pull(4, {1}, 3).values.floats(), ElementsAre(9, 9));
}

TEST_F(OwnedPartitionsTest, AFillForAPartitionThatIsGoneIsDropped) {
  OwnEmpty(3);
  owned_.AddTable(WarmTable());
  owned_.SetWarmStart(TableId(3), std::make_shared<OneRow>());
  const std::vector<FillJob> first = owned_.TakeFills();
  ASSERT_THAT(first, SizeIs(1));
  OwnFromSnapshot(4);
  owned_.Filled(first[0], Table::Filled(first[0].table, 1, kP, *first[0].rows));
  owned_.Loaded(owned_.TakeLoads(now_).at(0).id, LoadedPartition(), now_);
  EXPECT_FALSE(owned_.Find(kP)->KnowsTable(TableId(3)));
  const std::vector<FillJob> second = owned_.TakeFills();
  ASSERT_THAT(second, SizeIs(1));
  owned_.Filled(first[0], Table::Filled(first[0].table, 1, kP, *first[0].rows));
  EXPECT_FALSE(owned_.Find(kP)->KnowsTable(TableId(3))) << "told twice, of the other partition";
  owned_.Filled(second[0], Table::Filled(second[0].table, 1, kP, *second[0].rows));
  EXPECT_THAT(Pull(4, {1}, 3).values.floats(), ElementsAre(9, 9));
}

/// A fill may end before or after an image, its acceptance, and pushes to other tables.
class FillTest : public OwnedPartitionsTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Moments, FillTest, ::testing::Range(0, 4));

TEST_P(FillTest, LosesNoRowWhateverComesInBetween) {
  const int moment = GetParam();
  OwnEmpty(3);
  owned_.AddTable(WarmTable());
  owned_.SetWarmStart(TableId(3), std::make_shared<OneRow>());
  const auto fill_at = [&](int now) {
    if (now == moment) RunFills(&owned_);
  };
  fill_at(0);
  EXPECT_EQ(Push(3, 7, 1).code, PartCode::kOk);
  fill_at(1);
  Ask(10, 1, 3);
  const auto before = owned_.NextSnapshot(now_);
  ASSERT_TRUE(before.has_value());
  EXPECT_THAT(before->image.tables, SizeIs(moment < 2 ? 2 : 1)) << "whole or not at all";
  EXPECT_THAT(before->image.rows, SizeIs(moment < 2 ? 2 : 1));
  fill_at(2);
  EXPECT_EQ(Push(3, 8, 1, 1).code, PartCode::kOk);
  owned_.Written(kP, Number(10), SnapshotFile{"f10", 100}, now_);
  owned_.Report(++sequence_);
  Accept(10);
  fill_at(3);
  Ask(11, 2, 3);
  const auto after = owned_.NextSnapshot(now_);
  ASSERT_TRUE(after.has_value());
  Partition restored(kP, 1);
  ASSERT_THAT(restored.Restore(Number(11), std::vector{before->image, after->image}),
              testing::IsOk());
  const struct {
    uint32_t table;
    uint64_t key;
    float value;
  } rows[] = {{3, 1, 9}, {kTable, 7, 1}, {kTable, 8, 1}};
  for (const auto& [table, key, value] : rows) {
    std::vector<float> row(2);
    ASSERT_THAT(restored.Pull(TableId(table), {&key, 1}, row), testing::IsOk());
    EXPECT_THAT(row, ElementsAre(value, value)) << "moment " << moment << ", key " << key;
  }
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
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(10), absl::ResourceExhaustedError("disk full"), now_);
  owned_.Written(PartitionId(4), Number(11), SnapshotFile{"f11", 100}, now_);
  EXPECT_EQ(owned_.Report(++sequence_).snapshot_error, "disk full");
  ASSERT_TRUE(owned_.NextSnapshot(now_ + milliseconds(100)).has_value());
  owned_.Written(kP, Number(10), SnapshotFile{"f10", 100}, now_);
  EXPECT_EQ(owned_.Report(++sequence_).snapshot_error, "");
}

TEST_F(OwnedPartitionsTest, RowsOfAWarmStartComeOnceAndAreInTheSnapshotAfterIt) {
  const TableSpec warm = WarmTable();
  OwnEmpty(3);
  SnapshotAccepted(10, 3);
  owned_.Report(++sequence_);
  owned_.AddTable(warm);
  EXPECT_TRUE(owned_.HasNews());
  EXPECT_THAT(owned_.Report(++sequence_).warm_starts_wanted, ElementsAre(TableId(3)));
  EXPECT_EQ(Pull(3, {1}, 3).parts.at(0).code, PartCode::kRetry);
  EXPECT_EQ(Pull(3, {1}).parts.at(0).code, PartCode::kOk) << "other tables do not wait";
  Ask(11, 1, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value()) << "nothing has changed yet";
  Accept(11);
  owned_.SetWarmStart(TableId(3), std::make_shared<OneRow>());
  EXPECT_THAT(owned_.Report(++sequence_).warm_starts_wanted, IsEmpty());
  EXPECT_EQ(Pull(3, {1}, 3).parts.at(0).code, PartCode::kRetry) << "it is being filled";
  RunFills(&owned_);
  EXPECT_TRUE(owned_.HasNews());
  EXPECT_THAT(Pull(3, {1}, 3).values.floats(), ElementsAre(9, 9));
  Ask(12, 1, 3);
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_THAT(job->image.tables, SizeIs(2));

  // A process that restores this one needs no export; of one from before the table it does.
  for (const bool after : {false, true}) {
    OwnedPartitions other({.job_seed = 1, .partition_count = 6, .lane = 0, .lane_count = 2});
    other.AddTable(SumTable());
    other.AddTable(warm);
    LaneCommands commands;
    commands.owns.push_back(FromSnapshot(3));
    other.Apply(commands);
    auto partition = std::make_unique<Partition>(kP, 1);
    if (after) {
      PartitionImage image = job->image;
      image.kind = SnapshotKind::kBase;
      ASSERT_THAT(partition->Restore(Number(12), {&image, 1}), testing::IsOk());
    } else {
      partition->AddTable(SumTable());
    }
    other.Loaded(other.TakeLoads(now_).at(0).id, std::move(partition), now_);
    EXPECT_THAT(other.Report(1).warm_starts_wanted, SizeIs(after ? 0 : 1));
    if (!after) other.SetWarmStart(TableId(3), std::make_shared<OneRow>());
    RunFills(&other);
    std::vector<float> row(2);
    const uint64_t key = 1;
    ASSERT_THAT(other.Find(kP)->Pull(TableId(3), {&key, 1}, row), testing::IsOk());
    EXPECT_THAT(row, ElementsAre(9, 9));
  }
}

TEST_F(OwnedPartitionsTest, AnUnchangedPartitionReportsItsCutWithoutAFile) {
  OwnEmpty(3);
  Push(3, 7, 1);
  SnapshotAccepted(10, 3);
  Ask(11, 8, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value());
  const LaneReport report = owned_.Report(2);
  ASSERT_THAT(report.snapshots, SizeIs(1));
  EXPECT_EQ(report.snapshots[0].manifest,
            (Manifest{Number(11), DoneSeq(8), {{"f10", 100, Number(10)}}}));
  Accept(11);
  Push(3, 8, 1, 1);
  Ask(12, 9, 3);
  const auto job = owned_.NextSnapshot(now_);
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
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(11), absl::ResourceExhaustedError("disk full: /snap"), now_);
  EXPECT_EQ(owned_.Report(2).snapshot_error, "disk full: /snap");
  EXPECT_EQ(owned_.Report(2).restore_error, "") << "nothing was lost";
  EXPECT_THAT(owned_.Report(2).snapshots, IsEmpty());
  EXPECT_FALSE(owned_.NextSnapshot(now_ + milliseconds(99)).has_value());
  const auto job = owned_.NextSnapshot(now_ + milliseconds(100));
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
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(11), SnapshotFile{"refused", 5}, now_);
  Push(3, 9, 1, 2);
  owned_.Report(7);
  Ask(12, 9, 3, /*sequence=*/6);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value()) << "asked before the report came: it waits";
  Ask(13, 9, 3, /*sequence=*/7);
  const auto job = owned_.NextSnapshot(now_);
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
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  Ask(12, 9, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(11), SnapshotFile{"base", 5}, now_);
  owned_.Report(1);
  Push(3, 8, 1, 1);
  Accept(11);
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->number, Number(12));
  EXPECT_THAT(job->image.rows.at(0).keys, ElementsAre(8));
}

TEST_F(OwnedPartitionsTest, CommandsOfAnotherEpochOrAnOlderNumberTakeNoSnapshot) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(10, 4, 2);
  Ask(10, 4, 4);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value());
  SnapshotAccepted(10, 3);
  Push(3, 8, 1, 1);
  Ask(9, 5, 3);
  Ask(10, 5, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value());
}

TEST_F(OwnedPartitionsTest, ANewEpochDropsTheSnapshotsOfTheOldOne) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(10, 4, 3);
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  Own({kP, OwnerEpoch(4), OwnerEpoch(3), {}, false, {}});
  owned_.Written(kP, Number(10), SnapshotFile{"old", 5}, now_);
  EXPECT_THAT(owned_.Report(1).snapshots, IsEmpty());
  Ask(11, 5, 4);
  const auto job = owned_.NextSnapshot(now_);
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
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->image.kind, SnapshotKind::kBase);
  owned_.Written(kP, Number(16), SnapshotFile{"base", 5}, now_);
  EXPECT_THAT(owned_.Report(2).snapshots.at(0).manifest.files,
              ElementsAre(SnapshotFile{"base", 5, Number(16)}));
  Accept(16);
  Push(3, 8, 1, 1);
  Ask(17, 5, 3);
  EXPECT_EQ(owned_.NextSnapshot(now_)->image.kind, SnapshotKind::kDelta);
}

TEST_F(OwnedPartitionsTest, ARepeatedCommandOfANewMasterReplacesASnapshotItHasRefused) {
  OwnEmpty(1);
  Push(1, 7, 1);
  Ask(1, 0, 1, 1);
  const std::optional<SnapshotJob> before = owned_.NextSnapshot(now_);
  ASSERT_TRUE(before.has_value());
  // The master restarts and asks anew while the image is being written.
  Ask(2, 0, 1, 2);
  owned_.Written(kP, before->number, SnapshotFile{"old", 1}, now_);
  EXPECT_THAT(owned_.Report(3).snapshots, SizeIs(1));
  // Its answer to that report repeats the command: what was reported will never be accepted.
  Ask(2, 0, 1, 3);
  const std::optional<SnapshotJob> after = owned_.NextSnapshot(now_);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->number, Number(2));
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
