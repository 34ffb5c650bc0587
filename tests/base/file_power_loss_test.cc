#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
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
using testing::TempDir;

/// Writes a file in a new folder, then other contents, with the power lost at every step; what is
/// wrong afterwards.
std::vector<std::string> WriteTwice(const DiskModel::Faults& faults) {
  const TempDir folder;
  int written = 0;
  return LosePower(
      folder.path(), faults, 20,
      [&](FileRecorder&) {
        ASSERT_THAT(MakeDirectories(folder.File("a/b")), IsOk());
        for (const char* contents : {"the old contents", "new"}) {
          ASSERT_THAT(WriteFileAtomically(folder.File("a/b/file"), contents), IsOk());
          ++written;
        }
      },
      [&](const std::string& found, bool) -> std::string {
        const absl::StatusOr<std::string> read = ReadFile(found + "/a/b/file", 100);
        if (!read.ok()) return written == 0 ? "" : "gone after it was written";
        if (*read == "the old contents")
          return written < 2 ? "" : "old after the new one was written";
        return *read == "new" && written > 0 ? "" : "neither old nor new: " + *read;
      });
}

TEST(FilePowerLoss, AFileIsOldOrNewAndAsWrittenOnceItWasSaid) {
  EXPECT_THAT(WriteTwice({}), IsEmpty());
  EXPECT_THAT(WriteTwice({.files_stay_unsynced = true}), Not(IsEmpty()));
  EXPECT_THAT(WriteTwice({.folders_stay_unsynced = true}), Not(IsEmpty()));
}

}  // namespace
}  // namespace muster
