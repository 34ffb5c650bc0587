#include "tests/support/power_loss/disk_model.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

/// Every disk that may be found after a power loss now: the contents of "/f/a", "-" without it.
std::set<std::string> Found(const DiskModel& disk, const std::string& path = "/f/a") {
  std::set<std::string> found;
  Rng rng(1);
  for (int i = 0; i < 500; ++i) {
    const DiskModel after = disk.AfterPowerLoss(&rng);
    const std::string* const contents = after.Contents(path);
    found.insert(contents == nullptr ? "-" : *contents);
  }
  return found;
}

DiskModel WithFolder() {
  DiskModel disk;
  disk.MakeFolder("/f");
  disk.SyncFolder("/");
  return disk;
}

TEST(DiskModel, WhatWasNotSyncedMayBeGoneOrTorn) {
  DiskModel disk = WithFolder();
  disk.Create("/f/a");
  disk.Append("/f/a", "xy");
  disk.Sync("/f/a");
  EXPECT_THAT(Found(disk), UnorderedElementsAre("-", "xy"));
  disk.SyncFolder("/f");
  EXPECT_THAT(Found(disk), ElementsAre("xy"));
  disk.Append("/f/a", "z");
  EXPECT_THAT(Found(disk), UnorderedElementsAre("xy", "xyz", std::string("xy\0", 3)));
  disk.Write("/f/a", 0, "AB");
  EXPECT_THAT(Found(disk), UnorderedElementsAre("xy", "xyz", std::string("xy\0", 3), "Ayz", "ABz"));
  disk.Sync("/f/a");
  EXPECT_THAT(Found(disk), ElementsAre("ABz"));
  EXPECT_EQ(*disk.Contents("/f/a"), "ABz");
}

TEST(DiskModel, ARenameIsThereOrNot) {
  DiskModel disk = WithFolder();
  disk.Create("/f/a");
  disk.SyncFolder("/f");
  disk.Create("/f/a.tmp");
  disk.Append("/f/a.tmp", "new");
  disk.Sync("/f/a.tmp");
  disk.Rename("/f/a.tmp", "/f/a");
  EXPECT_THAT(Found(disk), UnorderedElementsAre("", "new"));
  disk.SyncFolder("/f");
  EXPECT_THAT(Found(disk), ElementsAre("new"));
  EXPECT_THAT(Found(disk, "/f/a.tmp"), ElementsAre("-"));
}

TEST(DiskModel, ADeletedFileMayComeBack) {
  DiskModel disk = WithFolder();
  disk.Create("/f/a");
  disk.SyncFolder("/f");
  disk.Remove("/f/a");
  EXPECT_THAT(Found(disk), UnorderedElementsAre("", "-"));
  disk.SyncFolder("/f");
  EXPECT_THAT(Found(disk), ElementsAre("-"));
}

TEST(DiskModel, AFolderThatWasNotSyncedTakesItsFilesAlong) {
  DiskModel disk = WithFolder();
  disk.MakeFolder("/f/g");
  disk.Create("/f/g/a");
  disk.SyncFolder("/f/g");
  EXPECT_THAT(Found(disk, "/f/g/a"), UnorderedElementsAre("", "-"));
  disk.SyncFolder("/f");
  EXPECT_THAT(Found(disk, "/f/g/a"), ElementsAre(""));
}

TEST(DiskModel, LiesOnRequest) {
  DiskModel disk({.files_stay_unsynced = true});
  disk.MakeFolder("/f");
  disk.SyncFolder("/");
  disk.Create("/f/a");
  disk.SyncFolder("/f");
  disk.Append("/f/a", "x");
  disk.Sync("/f/a");
  EXPECT_THAT(Found(disk), Contains(""));
  DiskModel other({.folders_stay_unsynced = true});
  other.Create("/f/a");
  other.SyncFolder("/f");
  EXPECT_THAT(Found(other), Contains("-"));
  EXPECT_THAT(Found(WithFolder()), Not(Contains("")));
}

TEST(DiskModel, TellsBeforeEveryChange) {
  DiskModel disk = WithFolder();
  std::vector<size_t> files;
  disk.OnChange([&](const DiskModel& now) { files.push_back(now.Files().size()); });
  disk.Create("/f/a");
  disk.Create("/f/b");
  disk.Remove("/f/a");
  EXPECT_THAT(files, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace muster::testing
