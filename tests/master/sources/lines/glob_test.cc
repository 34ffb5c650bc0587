#include "master/sources/lines/glob.h"

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GlobTest : public ::testing::Test {
 protected:
  void Touch(const std::string& name) {
    ASSERT_THAT(WriteFileAtomically(dir_.File(name), "x"), IsOk());
  }
  TempDir dir_;
};

TEST_F(GlobTest, FilesAreSortedAndEachComesOnce) {
  for (const char* name : {"b.csv", "a.csv", "Z.csv", "other.txt"}) Touch(name);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto files,
                              ExpandGlobs({dir_.File("*.csv"), dir_.File("a.csv")}));
  EXPECT_THAT(files, ElementsAre(dir_.File("Z.csv"), dir_.File("a.csv"), dir_.File("b.csv")));
}

TEST_F(GlobTest, NoMatchSaysWhatIsThere) {
  Touch("train-0.tsv");
  EXPECT_THAT(ExpandGlobs({dir_.File("train-*.csv")}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("train-*.csv"), HasSubstr("1 entry: train-0.tsv"))));
  EXPECT_THAT(ExpandGlobs({dir_.File("missing/a.csv")}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("missing/a.csv"), HasSubstr("cannot be listed"))));
  ASSERT_THAT(MakeDirectories(dir_.File("empty")), IsOk());
  EXPECT_THAT(ExpandGlobs({dir_.File("empty/*")}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("is empty")));
  // One pattern without a match is an error even when others match.
  EXPECT_FALSE(ExpandGlobs({dir_.File("*.tsv"), dir_.File("*.csv")}).ok());
}

TEST_F(GlobTest, AFolderIsAnErrorThatSaysWhatToWrite) {
  ASSERT_THAT(MakeDirectories(dir_.File("data")), IsOk());
  EXPECT_THAT(ExpandGlobs({dir_.File("data")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("data/*")));
}

TEST_F(GlobTest, EscapedWildcardsNameThemselves) {
  Touch("a[1].csv");
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto files, ExpandGlobs({dir_.File("a\\[1\\].csv")}));
  EXPECT_THAT(files, ElementsAre(dir_.File("a[1].csv")));
}

}  // namespace
}  // namespace muster
