#include "master/sources/lines/file_stamps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;

TEST(FileStampsTest, AreReadAsTheyWereWritten) {
  testing::TempDir folder;
  const std::string path = folder.File("train.seen");
  EXPECT_THAT(ReadFileStamps(path, 2), IsEmpty()) << "there is none";
  const std::vector<FileStamp> stamps = {{1, 2, 3, 4}, {5, 6, -7, 8}};
  ASSERT_THAT(WriteFileStamps(path, stamps), IsOk());
  EXPECT_THAT(ReadFileStamps(path, 2), ElementsAreArray(stamps));
  EXPECT_THAT(ReadFileStamps(path, 1), IsEmpty()) << "of other files";
  EXPECT_THAT(ReadFileStamps(path, 3), IsEmpty());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path, 1'000));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    ASSERT_THAT(WriteFileAtomically(path, damaged), IsOk());
    EXPECT_THAT(ReadFileStamps(path, 2), IsEmpty()) << "byte " << i;
  }
}

TEST(FileStampsTest, AFileThatIsWrittenAnewDiffersAndOneThatIsReadDoesNot) {
  testing::TempDir folder;
  const std::vector<std::string> paths = {folder.File("a"), folder.File("gone")};
  ASSERT_THAT(WriteFileAtomically(paths[0], "one"), IsOk());
  const auto before = StampFiles(paths, 2);
  EXPECT_EQ(before[0]->bytes, 3u);
  EXPECT_THAT(before[1], StatusIs(absl::StatusCode::kNotFound, HasSubstr(paths[1])));
  ASSERT_THAT(ReadFile(paths[0], 10), IsOk());
  EXPECT_EQ(*StampFiles(paths, 1)[0], *before[0]);
  ASSERT_THAT(WriteFileAtomically(paths[0], "two"), IsOk());
  EXPECT_NE(*StampFiles(paths, 1)[0], *before[0]) << "another inode";
}

}  // namespace
}  // namespace muster
