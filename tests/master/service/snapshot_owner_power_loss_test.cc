#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/service/snapshot_owner.h"
#include "tests/support/power_loss/file_recorder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using testing::DiskModel;
using testing::FileRecorder;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::LosePower;
using ::testing::Not;

/// Claims a folder with the power lost at every step; what is wrong afterwards.
std::vector<std::string> Claim(const DiskModel::Faults& faults) {
  const testing::TempDir folder;
  const SnapshotOwner ours{"id-1", "ours", "/ours"}, theirs{"id-2", "theirs", "/theirs"};
  return LosePower(
      folder.path(), faults, 10,
      [&](FileRecorder&) {
        ASSERT_THAT(
            ClaimSnapshotDirectory(OpenDirectoryStore(folder.File("snapshots")).get(), ours, {}),
            IsOk());
      },
      [&](const std::string& found, bool over) -> std::string {
        const auto store = OpenDirectoryStore(found + "/snapshots");
        const absl::Status own = CheckSnapshotDirectory(store.get(), ours, {});
        if (!own.ok()) return std::string(Message(own));
        const bool free = CheckSnapshotDirectory(store.get(), theirs, {}).ok();
        return over && free ? "the claim is gone" : "";
      });
}

TEST(SnapshotOwnerPowerLoss, AFolderIsFreeOrClaimedAndAClaimStays) {
  EXPECT_THAT(Claim({}), IsEmpty());
  EXPECT_THAT(Claim({.files_stay_unsynced = true}), Not(IsEmpty()));
  EXPECT_THAT(Claim({.folders_stay_unsynced = true}), Not(IsEmpty()));
}

}  // namespace
}  // namespace muster
