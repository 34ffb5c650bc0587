#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/exported/exported_table.h"
#include "tests/ps/export/sample_job.h"
#include "tests/support/power_loss/file_recorder.h"
#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::muster::testing::DiskModel;
using ::muster::testing::FileRecorder;
using ::muster::testing::IsOk;
using ::muster::testing::LosePower;
using ::testing::IsEmpty;
using ::testing::Not;

/// Exports a job with the power lost at every step; what is wrong with the folder afterwards.
std::vector<std::string> Export(const DiskModel::Faults& faults) {
  SampleJob job;
  const testing::TempDir folder;
  job.options.output_directory = folder.File("out");
  return LosePower(
      folder.path(), faults, 3,
      [&](FileRecorder&) { ASSERT_THAT(WriteExport(job.options), IsOk()); },
      [&](const std::string& found, bool over) -> std::string {
        if (!std::filesystem::exists(found + "/out")) return over ? "gone" : "";
        for (TableSpec table : job.options.tables) {
          table.warm_start_directory = found + "/out";
          const absl::Status opened = ExportedTable::Open(table).status();
          if (!opened.ok()) return std::string(Message(opened));
        }
        return "";
      });
}

TEST(ExportPowerLoss, TheFolderIsThereWholeOrNotAtAll) {
  EXPECT_THAT(Export({}), IsEmpty());
  EXPECT_THAT(Export({.files_stay_unsynced = true}), Not(IsEmpty()));
  EXPECT_THAT(Export({.folders_stay_unsynced = true}), Not(IsEmpty()));
}

}  // namespace
}  // namespace muster::ps
