#include "host/processes/log_reader.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "host/processes/log_file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;

class LogReaderTest : public ::testing::Test {
 protected:
  LogPiece Read(const LogQuestion& question) {
    absl::StatusOr<LogPiece> piece = ReadLog(path_, question);
    EXPECT_THAT(piece.status(), IsOk());
    return piece.value_or(LogPiece{});
  }
  static std::string Line(int i) { return fmt::format("line {:02}", i); }

  testing::TempDir folder_;
  const std::string path_ = folder_.File("node.log");
};

TEST_F(LogReaderTest, LastLinesWithoutTheUnfinishedOne) {
  ASSERT_THAT(WriteFileAtomically(path_, "a\nbb\n\nccc\nunfin"), IsOk());
  const LogPiece tail = Read({.lines = 2});
  EXPECT_THAT(tail.lines, ElementsAre("", "ccc"));
  EXPECT_EQ(tail.offset, 5u);
  EXPECT_EQ(tail.next_offset, 10u);
  EXPECT_THAT(Read({.lines = 9}).lines, ElementsAre("a", "bb", "", "ccc"));
  EXPECT_THAT(Read({.lines = 9, .bytes_max = 12}).lines, ElementsAre("", "ccc"))
      << "a line whose beginning is cut off is left out";
  EXPECT_THAT(Read({.offset = 10}).lines, IsEmpty());
}

TEST_F(LogReaderTest, FollowsOverEveryRotation) {
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path_, 100));
  std::vector<std::string> seen;
  uint64_t offset = 0;
  for (int i = 0; i < 60; ++i) {
    log.Write(Line(i) + "\n");
    if (i % 7 != 0) continue;
    const LogPiece piece = Read({.offset = offset, .lines = 1000});
    EXPECT_FALSE(piece.skipped) << i;
    EXPECT_EQ(piece.offset, offset);
    seen.insert(seen.end(), piece.lines.begin(), piece.lines.end());
    offset = piece.next_offset;
  }
  ASSERT_EQ(seen.size(), 57u);
  for (int i = 0; i < 57; ++i) EXPECT_EQ(seen[i], Line(i));
}

TEST_F(LogReaderTest, SaysWhenLinesAreGone) {
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path_, 100));
  for (int i = 0; i < 60; ++i) log.Write(Line(i) + "\n");
  const LogPiece piece = Read({.offset = 8, .lines = 1});
  EXPECT_TRUE(piece.skipped);
  EXPECT_EQ(piece.offset % 8, 0u);
  EXPECT_THAT(piece.lines, ElementsAre(Line(static_cast<int>(piece.offset / 8))));
  EXPECT_TRUE(Read({.offset = 1000}).skipped) << "the log started again";
}

TEST_F(LogReaderTest, ALineBeyondTheLimitComesInPieces) {
  ASSERT_THAT(WriteFileAtomically(path_, std::string(25, 'x') + "\nend\n"), IsOk());
  const LogPiece first = Read({.offset = 0, .bytes_max = 20});
  EXPECT_THAT(first.lines, ElementsAre(std::string(20, 'x')));
  EXPECT_THAT(Read({.offset = first.next_offset, .bytes_max = 20}).lines,
              ElementsAre("xxxxx", "end"));
}

TEST_F(LogReaderTest, NoLog) {
  EXPECT_THAT(ReadLog(path_, {}).status(), StatusIs(absl::StatusCode::kNotFound, ::testing::_));
}

TEST_F(LogReaderTest, AFollowerReadsWhatIsAppendedAndNothingElse) {
  ASSERT_THAT(WriteFileAtomically(path_, "old\n"), IsOk());
  // It is so large that a second read of everything would fail.
  std::filesystem::resize_file(path_, uint64_t{1} << 40);
  LogFollower follower(path_, uint64_t{1} << 40);
  EXPECT_EQ(follower.Next(100), "");
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path_, uint64_t{1} << 41));
  log.Write("new\nunfin");
  EXPECT_EQ(follower.Next(100), "new\nunfin");
  log.Write("ished\n");
  EXPECT_EQ(follower.Next(3), "ish");
  EXPECT_EQ(follower.Next(100), "ed\n");
}

TEST_F(LogReaderTest, AFollowerGoesOnOverARotation) {
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path_, 20));
  log.Write("line 01\n");
  LogFollower follower(path_, 8);
  std::string seen;
  for (int i = 2; i < 12; ++i) {
    log.Write(Line(i) + "\n");
    seen += follower.Next(100);
  }
  std::string all;
  for (int i = 2; i < 12; ++i) all += Line(i) + "\n";
  EXPECT_EQ(seen, all);
}

TEST(LastLinesTest, LastLines) {
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
  testing::TempDir folder;
  for (const Case& c : cases) {
    ASSERT_THAT(WriteFileAtomically(folder.File("log"), c.text), IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(std::string got, ReadLastLines(folder.File("log"), c.lines, 100));
    EXPECT_EQ(got, c.expected) << c.text;
  }
  ASSERT_THAT(WriteFileAtomically(folder.File("log"), "0123456789"), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string cut, ReadLastLines(folder.File("log"), 1, 4));
  EXPECT_EQ(cut, "6789");
}

TEST(LastLinesTest, LastWordsAreOfTheLastProcessAlone) {
  testing::TempDir folder;
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

TEST(LastLinesTest, TheyGoBackOverARotation) {
  testing::TempDir folder;
  const std::string path = folder.File("log");
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(path, 50));
  log.Write("--- muster: worker-0 started, pid 1\nfirst words\n");
  log.Write("last words\n");
  ASSERT_TRUE(std::filesystem::exists(path + ".1"));
  EXPECT_EQ(ReadLastLines(path, 2, 100).value(), "first words\nlast words\n");
  EXPECT_EQ(ReadLastLines(path, 9, 15).value(), "rds\nlast words\n");
  EXPECT_EQ(LastWords(path, 10, 4096), "first words\nlast words\n");
}

}  // namespace
}  // namespace muster
