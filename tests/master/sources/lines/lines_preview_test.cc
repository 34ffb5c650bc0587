// LinesDataset::Preview.
#include <gmock/gmock.h>

#include <string>
#include <variant>

#include "base/file.h"
#include "master/sources/lines/lines_dataset.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LinesPreviewTest : public ::testing::Test {
 protected:
  LinesPreviewTest() { job_.datasets = {{.name = "train"}}; }
  absl::StatusOr<SourcePreview> Preview() { return LinesDataset(job_, DatasetId(0)).Preview(); }
  DatasetSpec& dataset() { return job_.datasets[0]; }
  static double Number(const SourcePreview& preview, const std::string& fact) {
    return static_cast<double>(std::get<uint64_t>(preview.facts.at(fact)));
  }

  testing::TempDir folder_;
  JobSpec job_;
};

TEST_F(LinesPreviewTest, AFileThatTwoPatternsMatchIsPlannedOnce) {
  ASSERT_THAT(WriteFileAtomically(folder_.File("a.csv"), "1\n2\n3\n"), IsOk());
  dataset().source = LinesSpec{.files = {folder_.File("*.csv"), folder_.File("a.csv")}};
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePreview preview, Preview());
  EXPECT_THAT(preview.parts, ElementsAre(folder_.File("a.csv")));
  EXPECT_EQ(preview.how, "train, 1 epoch");
  EXPECT_EQ(preview.what, "1 file, 6 bytes, about 3 records in 1 shard");
  EXPECT_EQ(std::get<std::string>(preview.facts.at("mode")), "train");
  EXPECT_EQ(Number(preview, "epochs"), 1);
  EXPECT_EQ(Number(preview, "bytes"), 6);
  EXPECT_EQ(std::get<std::vector<std::string>>(preview.facts.at("files")), preview.parts);
}

TEST_F(LinesPreviewTest, AnEvaluateDatasetHasNoEpochsOfItsOwn) {
  ASSERT_THAT(WriteFileAtomically(folder_.File("a.csv"), "1\n"), IsOk());
  dataset().source = LinesSpec{.files = {folder_.File("a.csv")}};
  dataset().mode = DatasetMode::kEvaluate;
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePreview preview, Preview());
  EXPECT_EQ(preview.how, "evaluate, after every training epoch");
}

TEST_F(LinesPreviewTest, TheDatasetIsExpandedAndEstimated) {
  std::string lines = "header\n";
  for (int i = 0; i < 100'000; ++i) lines += "12345678\n";
  ASSERT_THAT(WriteFileAtomically(folder_.File("b.csv"), lines), IsOk());
  ASSERT_THAT(WriteFileAtomically(folder_.File("a.csv"), "header\n1\n2\n3"), IsOk());
  dataset().source = LinesSpec{.files = {folder_.File("*.csv")}, .header = true};
  dataset().minibatch_size = 10;
  dataset().minibatches_per_shard = 10;
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePreview preview, Preview());
  EXPECT_THAT(preview.parts, ElementsAre(folder_.File("a.csv"), folder_.File("b.csv")));
  EXPECT_NEAR(Number(preview, "records_estimate"), 100'003, 100);
  EXPECT_NEAR(Number(preview, "shards_estimate"), 1'001, 2);
}

TEST_F(LinesPreviewTest, DataThatAreMissingOrEmptyAreNamed) {
  dataset().source = LinesSpec{.files = {folder_.File("c-*.csv")}};
  EXPECT_THAT(Preview(),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("train"), HasSubstr("c-*.csv"), HasSubstr(folder_.path()))));
  ASSERT_THAT(WriteFileAtomically(folder_.File("c-1.csv"), ""), IsOk());
  EXPECT_THAT(Preview(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("dataset train"), HasSubstr("c-1.csv"))));
}

}  // namespace
}  // namespace muster
