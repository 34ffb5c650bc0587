#include "master/sources/lines/file_reader.h"

#include <string>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::HasSubstr;

TEST(FileReaderTest, ReadsAtOffsetsAndStopsAtTheEnd) {
  TempDir dir;
  ASSERT_THAT(WriteFileAtomically(dir.File("a"), "0123456789"), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const FileReader file, FileReader::Open(dir.File("a")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t bytes, file.Size());
  EXPECT_EQ(bytes, 10u);
  std::string buffer(4, '?');
  MUSTER_ASSERT_OK_AND_ASSIGN(size_t got, file.ReadAt(3, buffer));
  EXPECT_EQ(got, 4u);
  EXPECT_EQ(buffer, "3456");
  MUSTER_ASSERT_OK_AND_ASSIGN(got, file.ReadAt(8, buffer));
  EXPECT_EQ(got, 2u);
  MUSTER_ASSERT_OK_AND_ASSIGN(got, file.ReadAt(100, buffer));
  EXPECT_EQ(got, 0u);
}

TEST(FileReaderTest, PinsAreEqualForEqualContentAndErrorsNameTheFile) {
  TempDir dir;
  ASSERT_THAT(WriteFileAtomically(dir.File("a"), "same"), IsOk());
  ASSERT_THAT(WriteFileAtomically(dir.File("b"), "same"), IsOk());
  ASSERT_THAT(WriteFileAtomically(dir.File("c"), "else"), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePin a, PinFile(dir.File("a")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePin b, PinFile(dir.File("b")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePin c, PinFile(dir.File("c")));
  EXPECT_EQ(a, b);
  EXPECT_NE(a.hash, c.hash);
  EXPECT_THAT(PinFile(dir.File("gone")), StatusIs(absl::StatusCode::kNotFound, HasSubstr("gone")));
}

}  // namespace
}  // namespace muster
