#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "ps/snapshot/chain.h"
#include "ps/snapshot/snapshot.h"
#include "tests/ps/snapshot/sample_image.h"
#include "tests/support/power_loss/file_recorder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {
namespace {

using ::muster::testing::DiskModel;
using ::muster::testing::FileRecorder;
using ::muster::testing::IsOk;
using ::muster::testing::LosePower;
using ::muster::testing::TempDir;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr PartitionId kPartition(3);

/// Images of some KB that do not compress, so that RocksDB writes them in several steps.
PartitionImage LargeImage(SnapshotKind kind, uint64_t seed) {
  PartitionImage image = SampleImage(kind);
  Rng rng(seed);
  RowImage& rows = image.rows[0];
  rows.keys.clear();
  rows.rows.clear();
  for (uint64_t key = 0; key < 500; ++key) {
    rows.keys.push_back(key);
    for (uint32_t i = 0; i < rows.floats_per_row; ++i) {
      rows.rows.push_back(static_cast<float>(rng.Uniform()));
    }
  }
  return image;
}

/// Writes a base and two deltas and takes each into the manifest when it is said to be written, as
/// the master does, with the power lost at every step; what is wrong afterwards.
std::vector<std::string> WriteChain(const DiskModel::Faults& faults) {
  const TempDir folder;
  Manifest manifest;
  return LosePower(
      folder.path(), faults, 8,
      [&](FileRecorder& recorder) {
        for (uint64_t number = 1; number <= 3; ++number) {
          const SnapshotKind kind = number == 1 ? SnapshotKind::kBase : SnapshotKind::kDelta;
          const SnapshotNumber snapshot(MasterIncarnation(1), number);
          MUSTER_ASSERT_OK_AND_ASSIGN(
              const SnapshotFile file,
              WriteSnapshot(OpenDirectoryStore(folder.path()).get(), kPartition, OwnerEpoch(12),
                            snapshot, LargeImage(kind, number), recorder.env()));
          manifest = ExtendChain(manifest, kind, snapshot, DoneSeq(number), file);
        }
      },
      [&](const std::string& found, bool) -> std::string {
        const auto images = ReadChain(OpenDirectoryStore(found).get(), kPartition, manifest);
        if (!images.ok()) return std::string(Message(images.status()));
        return images->size() == manifest.files.size() ? "" : "a file of the manifest was left out";
      });
}

TEST(SnapshotPowerLoss, WhatAManifestNamesIsThereAndWhole) {
  EXPECT_THAT(WriteChain({}), IsEmpty());
  EXPECT_THAT(WriteChain({.files_stay_unsynced = true}), Not(IsEmpty()));
  EXPECT_THAT(WriteChain({.folders_stay_unsynced = true}), Not(IsEmpty()));
}

/// Every byte of a file changed in turn, and the file cut at every length.
TEST(SnapshotDamage, IsRefusedAndTheFileNamed) {
  const TempDir folder;
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const SnapshotFile file,
      WriteSnapshot(OpenDirectoryStore(folder.path()).get(), kPartition, OwnerEpoch(1),
                    {MasterIncarnation(1), 1}, SampleImage(SnapshotKind::kBase)));
  const Manifest manifest{{MasterIncarnation(1), 1}, DoneSeq(1), {file}};
  const std::string path = folder.File(file.name);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path, 1 << 20));
  const auto expect_refused = [&](const std::string& damaged, size_t at) {
    std::ofstream(path, std::ios::binary) << damaged;
    const absl::Status read =
        ReadChain(OpenDirectoryStore(folder.path()).get(), kPartition, manifest).status();
    EXPECT_TRUE(absl::IsDataLoss(read)) << at << ": " << read;
    EXPECT_THAT(std::string(Message(read)), ::testing::HasSubstr(path)) << at;
    EXPECT_THAT(std::string(Message(read)), ::testing::HasSubstr("put the file back")) << at;
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    expect_refused(damaged, at);
    expect_refused(whole.substr(0, at), at);
  }
}

}  // namespace
}  // namespace muster::ps
