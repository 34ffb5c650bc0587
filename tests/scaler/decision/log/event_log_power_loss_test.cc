#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scaler/decision/log/event_log.h"
#include "tests/support/fake_clock.h"
#include "tests/support/power_loss/file_recorder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler {
namespace {

using ::muster::testing::DiskModel;
using ::muster::testing::FakeClock;
using ::muster::testing::FileRecorder;
using ::muster::testing::IsOk;
using ::muster::testing::LosePower;
using ::muster::testing::TempDir;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr EventLog::Options kSmallFiles{.file_bytes_max = 1'000};

/// Appends over some rotations and a restart while the power is lost at every step; what is wrong
/// with what is found.
std::vector<std::string> AppendAndLosePower(const DiskModel::Faults& faults) {
  const TempDir folder;
  const FakeClock clock;
  uint64_t acknowledged = 0;
  return LosePower(
      folder.path(), faults, 3,
      [&](FileRecorder&) {
        for (int run = 0; run < 2; ++run) {
          auto log = EventLog::Open(folder.path(), kSmallFiles, &clock);
          ASSERT_THAT(log, IsOk());
          for (int i = 0; i < 10; ++i) acknowledged = (*log)->Append({.because = "told"}).id;
        }
      },
      [&](const std::string& found, bool) -> std::string {
        if (acknowledged == 0) return "";
        const auto last = ReadExplanation(found, acknowledged);
        if (!last.ok()) return std::string(Message(last.status()));
        return last->event.because == "told" ? "" : last->event.because;
      });
}

TEST(EventLogPowerLoss, WhatWasToldIsThere) {
  EXPECT_THAT(AppendAndLosePower({}), IsEmpty());
  EXPECT_THAT(AppendAndLosePower({.files_stay_unsynced = true}), Not(IsEmpty()));
  EXPECT_THAT(AppendAndLosePower({.folders_stay_unsynced = true}), Not(IsEmpty()));
}

}  // namespace
}  // namespace muster::scaler
