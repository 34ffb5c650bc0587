// CheckTopics asks librdkafka whether a client could be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/streams/topic_watcher.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

TEST(CheckTopicsTest, NamesDatasetAndSetting) {
  JobSpec job;
  job.datasets.resize(2);
  job.datasets[1].name = "clicks";
  TopicSpec topic;
  topic.topic = "t";
  topic.brokers = {"127.0.0.1:1"};
  job.datasets[1].source = topic;
  EXPECT_THAT(CheckTopics(job), IsOk());
  topic.properties["no.such"] = "1";
  job.datasets[1].source = topic;
  EXPECT_THAT(CheckTopics(job), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("dataset 'clicks': the setting no.such")));
}

}  // namespace
}  // namespace muster
