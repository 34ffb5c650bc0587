#include "host/processes/log_times.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "host/processes/log_file.h"
#include "host/processes/log_reader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsOk;
using testing::StatusIs;

class LogTimesTest : public ::testing::Test {
 protected:
  std::string Since(WallTime since) const {
    const absl::StatusOr<LogTail> tail = ReadLogTail(path_, UINT32_MAX, since, 1'000'000);
    return tail.ok() ? tail->text : std::string(tail.status().message());
  }

  testing::TempDir folder_;
  const std::string path_ = folder_.File("node.log");
};

TEST_F(LogTimesTest, LinesSinceASecondAlsoOverARotation) {
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path_, 30));
  for (int i = 10; i < 15; ++i) log.Write(fmt::format("line {}\n", i), seconds(i));
  ASSERT_TRUE(std::filesystem::exists(path_ + ".1"));
  EXPECT_EQ(Since(seconds(1)), "line 10\nline 11\nline 12\nline 13\nline 14\n");
  EXPECT_EQ(Since(seconds(12)), "line 12\nline 13\nline 14\n");
  EXPECT_EQ(Since(milliseconds(13'900)), "line 13\nline 14\n") << "to the second";
  EXPECT_EQ(Since(seconds(15)), "");
}

TEST_F(LogTimesTest, ALineThatHadBegunBeforeIsWhole) {
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path_, 1'000));
  log.Write("old\nbeg", seconds(1));
  log.Write("un\nnew\n", seconds(5));
  EXPECT_EQ(Since(seconds(3)), "begun\nnew\n");
}

TEST_F(LogTimesTest, ALogGoesOnWithItsPositions) {
  for (int i = 1; i < 4; ++i) {
    MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path_, 1'000));
    log.Write(fmt::format("life {}\n", i), seconds(i * 10));
  }
  EXPECT_EQ(Since(seconds(15)), "life 2\nlife 3\n");
}

TEST_F(LogTimesTest, NothingIsNoted) {
  ASSERT_THAT(WriteFileAtomically(path_, "before\n"), IsOk());
  EXPECT_THAT(ReadLogTail(path_, 9, seconds(1), 1'000),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::_));
  EXPECT_EQ(PositionSince(path_, seconds(1), 7), std::nullopt);
}

}  // namespace
}  // namespace muster
