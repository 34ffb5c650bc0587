#include "scaler/launcher/log_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

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

TEST(LogFileTest, ErrorNamesThePath) {
  EXPECT_THAT(RotatingLog::Open("/does/not/exist.log", 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/does/not/exist.log")));
}

TEST(LogFileTest, LastLines) {
  struct Case {
    const char* text;
    uint32_t lines;
    const char* expected;
  };
  const Case cases[] = {
      {"", 3, ""},
      {"one", 3, "one"},
      {"a\nb\nc\n", 2, "b\nc\n"},
      {"a\nb\nc", 2, "b\nc"},
      {"a\nb\n", 9, "a\nb\n"},
      {"a\n\n\n", 2, "\n\n"},
      {"a\nb\n", 0, ""},
  };
  TempDir folder;
  for (const Case& c : cases) {
    ASSERT_THAT(WriteFileAtomically(folder.File("log"), c.text), IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(std::string got, ReadLastLines(folder.File("log"), c.lines, 100));
    EXPECT_EQ(got, c.expected) << c.text;
  }
  ASSERT_THAT(WriteFileAtomically(folder.File("log"), "0123456789"), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string cut, ReadLastLines(folder.File("log"), 1, 4));
  EXPECT_EQ(cut, "6789");
}

TEST(LogFileTest, LastWordsAreOfTheLastProcessAlone) {
  TempDir folder;
  const std::string path = folder.File("log");
  ASSERT_THAT(WriteFileAtomically(path,
                                  "--- muster: worker-0 started, pid 1\nold words\n"
                                  "--- muster: worker-0 started, pid 2\nnew --- muster: words\n"
                                  "the end\n"),
              IsOk());
  EXPECT_EQ(LastWords(path, 10, 4096), "new --- muster: words\nthe end\n");
  EXPECT_EQ(LastWords(path, 1, 4096), "the end\n");
  ASSERT_THAT(WriteFileAtomically(path, "old\n--- muster: worker-0 started, pid 3\n"), IsOk());
  EXPECT_EQ(LastWords(path, 10, 4096), "");
  std::string text = "--- muster: worker-0 started, pid 4\nthe end\n";
  for (int i = 0; i < 1000; ++i) text += "... muster: #1 main\n";
  ASSERT_THAT(WriteFileAtomically(path, text + "at last"), IsOk());
  EXPECT_EQ(LastWords(path, 10, 4096), "the end\nat last");
  EXPECT_EQ(LastWords(path, 10, 7), "at last");
  EXPECT_EQ(LastWords(folder.File("none"), 10, 4096), "");
}

}  // namespace
}  // namespace muster
