#include "host/processes/log_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/descriptor_limit.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using testing::DescriptorLimit;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

TEST(LogFileTest, RotatesOnceAndKeepsBothWithinTheLimit) {
  TempDir folder;
  const std::string path = folder.File("node.log");
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path, 100));
  for (int i = 0; i < 50; ++i) log.Write(fmt::format("line {:02}\n", i));  // 8 bytes each
  EXPECT_LE(std::filesystem::file_size(path), 100u);
  EXPECT_LE(std::filesystem::file_size(path + ".1"), 100u);
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string text, ReadFile(path, 1000));
  EXPECT_THAT(text, HasSubstr("line 49\n"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}),
            3);  // one is .base
}

TEST(LogFileTest, GoesOnWithAnOlderFile) {
  TempDir folder;
  const std::string path = folder.File("node.log");
  ASSERT_THAT(WriteFileAtomically(path, "before\n"), IsOk());
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path, 100));
    log.Write("after\n");
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string text, ReadFile(path, 1000));
  EXPECT_EQ(text, "before\nafter\n");
}

TEST(LogFileTest, KnowsIfItEndsWithinALine) {
  TempDir folder;
  const std::string path = folder.File("node.log");
  for (const std::string text : {"", "one\n", "half", "line\n"}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path, 100));
    log.Write(text);
    EXPECT_EQ(log.within_line(), text == "half");
    MUSTER_ASSERT_OK_AND_ASSIGN(const RotatingLog again, RotatingLog::Open(path, 100));
    EXPECT_EQ(again.within_line(), text == "half");
  }
}

TEST(LogFileTest, AFullDiskDropsLinesAndNothingElse) {
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open("/dev/full", 100));
  for (int i = 0; i < 50; ++i) log.Write("text", WallTime(i));
  EXPECT_FALSE(log.within_line()) << "nothing was written";
}

TEST(LogFileTest, GoesOnAfterARotationThatCouldOpenNoFile) {
  TempDir folder;
  const std::string path = folder.File("node.log");
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path, 10));
  log.Write("12345678\n");
  {
    const DescriptorLimit limit(DescriptorLimit::kNone);
    log.Write("lost\n");
  }
  EXPECT_FALSE(ReadFile(path, 1000).ok());
  log.Write("there\n");
  EXPECT_EQ(ReadFile(path, 1000).value_or(""), "there\n");
}

TEST(LogFileTest, ErrorNamesThePath) {
  EXPECT_THAT(RotatingLog::Open("/does/not/exist.log", 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/does/not/exist.log")));
}

}  // namespace
}  // namespace muster
