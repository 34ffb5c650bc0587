#include "master/service/epoch_end_options.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;

JobSpec Job() {
  JobSpec job;
  job.datasets = {{.name = "train", .source = LinesSpec{}},
                  {.name = "test", .mode = DatasetMode::kEvaluate, .source = LinesSpec{}}};
  return job;
}

TEST(EpochEndOptionsTest, AJobThatDecidesNothingAtTheEndOfAnEpoch) {
  JobSpec job = Job();
  MUSTER_ASSERT_OK_AND_ASSIGN(const EpochEndOptions none, EpochEndOptionsOf(job));
  EXPECT_FALSE(none.any());
}

TEST(EpochEndOptionsTest, EveryFieldOfTheJobFileIsTakenOver) {
  JobSpec job = Job();
  job.training.keep_best = "auc";
  job.training.keep_every = 3;
  job.training.keep_last = 7;
  job.training.stop_early_metric = "test/loss";
  job.training.stop_early_patience = 4;
  job.training.stop_early_min_delta = 0.5;
  MUSTER_ASSERT_OK_AND_ASSIGN(const EpochEndOptions options, EpochEndOptionsOf(job));
  ASSERT_TRUE(options.keep_best.has_value());
  EXPECT_EQ(options.keep_best->dataset, DatasetId(1));
  EXPECT_EQ(options.keep_best->name, "auc");
  EXPECT_EQ(options.keep_best->better, Better::kHigher);
  EXPECT_EQ(options.keep_every, 3u);
  EXPECT_EQ(options.keep_last, 7u);
  ASSERT_TRUE(options.stop_early.has_value());
  EXPECT_EQ(options.stop_early->metric.name, "loss");
  EXPECT_EQ(options.stop_early->metric.better, Better::kLower);
  EXPECT_EQ(options.stop_early->patience, 4u);
  EXPECT_EQ(options.stop_early->min_delta, 0.5);
}

TEST(EpochEndOptionsTest, AnErrorNamesTheField) {
  JobSpec job = Job();
  job.training.keep_best = "spread";
  EXPECT_THAT(EpochEndOptionsOf(job).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("spec.training.keep.best"), HasSubstr("'spread'"))));
  job.training.keep_best.clear();
  job.training.stop_early_metric = "loss";
  job.datasets.pop_back();
  EXPECT_THAT(EpochEndOptionsOf(job).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("spec.training.stopEarly.metric"), HasSubstr("'loss'"))));
}

}  // namespace
}  // namespace muster
