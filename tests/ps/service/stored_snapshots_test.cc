#include "ps/service/stored_snapshots.h"

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::HasSubstr;

constexpr PartitionId kP{3};

TEST(StoredSnapshotsTest, APartitionComesBackFromItsFile) {
  TempDir dir;
  TableSpec table;
  table.id = TableId(1);
  table.name = "t";
  table.dim = 2;
  table.optimizer = SumSpec{};
  Partition partition(kP, 1);
  partition.AddTable(table);
  const uint64_t key = 7;
  const std::vector<float> values = {3, 4};
  Part part;
  part.groups = {{TableId(1), {&key, 1}, values}};
  ASSERT_EQ(partition.Apply(part).code, ApplyCode::kApplied);
  const SnapshotNumber number(MasterIncarnation(1), 2);

  const auto storage = *OpenStorage(dir.path());
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const SnapshotFile file,
      storage->Write(kP, OwnerEpoch(4), number, partition.Snapshot(number, SnapshotKind::kBase)));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto images, storage->Read(kP, {number, DoneSeq(1), {file}}));
  Partition restored(kP, 1);
  ASSERT_THAT(restored.Restore(number, images), IsOk());
  std::vector<float> row(2);
  ASSERT_THAT(restored.Pull(TableId(1), {&key, 1}, row), IsOk());
  EXPECT_EQ(row, values);
  EXPECT_TRUE(restored.InWindow(part.shard, part.minibatch));
}

TEST(StoredSnapshotsTest, WhatIsNotThereIsNamed) {
  TempDir dir;
  const auto storage = *OpenStorage(dir.path());
  const Manifest manifest{SnapshotNumber(MasterIncarnation(1), 2), DoneSeq(1), {{"gone.sst", 9}}};
  EXPECT_THAT(storage->Read(kP, manifest),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("gone.sst")));
  TableSpec table;
  table.warm_start_directory = dir.File("no-export");
  EXPECT_THAT(storage->OpenWarmStart(table, 4),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no-export")));
}

}  // namespace
}  // namespace muster::ps
