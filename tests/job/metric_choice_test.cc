#include "job/metric_choice.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

JobSpec JobWith(const std::vector<std::pair<std::string, DatasetMode>>& datasets) {
  JobSpec job;
  for (const auto& [name, mode] : datasets) job.datasets.push_back({.name = name, .mode = mode});
  return job;
}

TEST(MetricChoiceTest, OneEvaluateDatasetNeedsNoName) {
  const JobSpec job = JobWith({{"train", DatasetMode::kTrain}, {"test", DatasetMode::kEvaluate}});
  for (const std::string text : {"auc", "test/auc"}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const MetricChoice choice, ChooseMetric(job, text));
    EXPECT_EQ(choice.dataset, 1u);
    EXPECT_EQ(choice.metric, "auc");
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const MetricChoice other, ChooseMetric(job, "val/auc"));
  EXPECT_EQ(other.metric, "val/auc") << "a metric may have a slash";
}

TEST(MetricChoiceTest, SeveralNeedOne) {
  const JobSpec job = JobWith({{"a", DatasetMode::kEvaluate}, {"b", DatasetMode::kEvaluate}});
  MUSTER_ASSERT_OK_AND_ASSIGN(const MetricChoice choice, ChooseMetric(job, "b/auc"));
  EXPECT_EQ(choice.dataset, 1u);
  EXPECT_THAT(ChooseMetric(job, "auc"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("write a/METRIC")));
}

TEST(MetricChoiceTest, ATrainDatasetHasNoneThatCounts) {
  EXPECT_THAT(ChooseMetric(JobWith({{"train", DatasetMode::kTrain}}), "train/auc"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no dataset of mode")));
}

}  // namespace
}  // namespace muster
