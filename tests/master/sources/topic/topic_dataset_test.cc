#include "master/sources/topic/topic_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

class TopicDatasetTest : public ::testing::Test {
 protected:
  TopicDatasetTest() {
    job_.name = "flights";
    topic_.topic = "t";
    topic_.brokers = {"127.0.0.1:1"};
  }
  TopicDataset Make() {
    DatasetSpec dataset{.name = "clicks", .source = topic_};
    dataset.minibatch_size = 8;
    dataset.minibatches_per_shard = 3;
    job_.datasets = {{}, dataset};
    return TopicDataset(job_, DatasetId(1));
  }
  JobSpec job_;
  TopicSpec topic_;
};

TEST_F(TopicDatasetTest, ASettingThatCannotWorkIsNamed) {
  EXPECT_THAT(Make().CheckSettings(), IsOk());
  topic_.properties["no.such"] = "1";
  EXPECT_THAT(Make().CheckSettings(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the setting no.such")));
}

TEST_F(TopicDatasetTest, ItGrowsAsTheJobFileSays) {
  topic_.max_delay = std::chrono::milliseconds(70);
  topic_.open_ranges_max = 5;
  const TopicDataset dataset = Make();
  EXPECT_EQ(dataset.layout()->shard_count(), 0u);
  const StreamPlan plan = *dataset.Growth();
  EXPECT_EQ(plan.topic, "t");
  EXPECT_EQ(plan.cut.minibatch_size, 8u);
  EXPECT_EQ(plan.cut.minibatches_per_shard, 3u);
  EXPECT_EQ(plan.cut.max_delay, std::chrono::milliseconds(70));
  EXPECT_EQ(plan.open_ranges_max, 5u);
}

// Journals of jobs that are in progress have it.
TEST_F(TopicDatasetTest, TheFingerprintIsAsItEverWas) {
  EXPECT_EQ(Make().Fingerprint(), "topic");
}

TEST_F(TopicDatasetTest, AWorkerIsToldHowToReadIt) {
  topic_.dead_letter_topic = "dead";
  topic_.secrets["sasl.password"] = "env:X";
  HelloResponse hello;
  Make().Introduce(&hello);
  ASSERT_EQ(hello.topics.size(), 1u);
  EXPECT_EQ(hello.topics[0].dataset, "clicks");
  EXPECT_THAT(hello.topics[0].brokers, ElementsAre("127.0.0.1:1"));
  EXPECT_EQ(hello.topics[0].group, "muster.flights");
  EXPECT_EQ(hello.topics[0].record_bytes_max, topic_.record_bytes_max);
  EXPECT_EQ(hello.topics[0].dead_letter_topic, "dead");
  EXPECT_EQ(hello.topics[0].secrets, topic_.secrets);
}

TEST_F(TopicDatasetTest, APreviewSaysWhereItBeginsAndEnds) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePreview preview, Make().Preview());
  EXPECT_EQ(preview.name, "clicks");
  EXPECT_EQ(preview.how, "train");
  EXPECT_EQ(preview.what, "topic t on 127.0.0.1:1, from earliest to never");
  EXPECT_EQ(std::get<std::string>(preview.facts.at("end")), "never");
  EXPECT_FALSE(preview.facts.contains("epochs"));
}

}  // namespace
}  // namespace muster
