#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

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
  EXPECT_FALSE(Served(kP)->KnowsTable(TableId(3)));
  const std::vector<FillJob> second = owned_.TakeFills();
  ASSERT_THAT(second, SizeIs(1));
  owned_.Filled(first[0], Table::Filled(first[0].table, 1, kP, *first[0].rows));
  EXPECT_FALSE(Served(kP)->KnowsTable(TableId(3))) << "told twice, of the other partition";
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
  const auto before = NextSnapshot(now_);
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
  const auto after = NextSnapshot(now_);
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

TEST_F(OwnedPartitionsTest, RowsOfAWarmStartComeOnceAndAreInTheSnapshotAfterIt) {
  const TableSpec warm = WarmTable();
  OwnEmpty(3);
  SnapshotAccepted(10, 3);
  owned_.Report(++sequence_);
  owned_.AddTable(warm);
  EXPECT_TRUE(owned_.HasNews());
  const PullReply early = Pull(3, {7}, 3);
  EXPECT_EQ(early.parts.at(0).code, PartCode::kRetry) << "its rows have not come";
  EXPECT_EQ(early.text, "") << "a text would move what follows it to an odd address";
  EXPECT_THAT(owned_.Report(++sequence_).warm_starts_wanted, ElementsAre(TableId(3)));
  EXPECT_EQ(Pull(3, {1}, 3).parts.at(0).code, PartCode::kRetry);
  EXPECT_EQ(Pull(3, {1}).parts.at(0).code, PartCode::kOk) << "other tables do not wait";
  Ask(11, 1, 3);
  EXPECT_FALSE(NextSnapshot(now_).has_value()) << "nothing has changed yet";
  Accept(11);
  owned_.SetWarmStart(TableId(3), std::make_shared<OneRow>());
  EXPECT_THAT(owned_.Report(++sequence_).warm_starts_wanted, IsEmpty());
  EXPECT_EQ(Pull(3, {1}, 3).parts.at(0).code, PartCode::kRetry) << "it is being filled";
  RunFills(&owned_);
  EXPECT_TRUE(owned_.HasNews());
  EXPECT_THAT(Pull(3, {1}, 3).values.floats(), ElementsAre(9, 9));
  Ask(12, 1, 3);
  const auto job = NextSnapshot(now_);
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
    ASSERT_THAT(ps::Served(other, kP)->Pull(TableId(3), {&key, 1}, row), testing::IsOk());
    EXPECT_THAT(row, ElementsAre(9, 9));
  }
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
