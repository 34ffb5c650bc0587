#include "kafka/topic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kafka/mock_cluster.h"
#include "tests/support/status_matchers.h"

namespace muster::kafka {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class TopicTest : public ::testing::Test {
 protected:
  std::unique_ptr<Topic> Open(const std::string& name) {
    auto topic = Topic::Open(cluster_.config(), {.topic = name, .group = "muster.test"});
    EXPECT_TRUE(topic.ok()) << topic.status();
    return *std::move(topic);
  }
  MockCluster cluster_;
};

TEST_F(TopicTest, PartitionsAndWhereTheyEnd) {
  cluster_.CreateTopic("t", 3);
  cluster_.Produce("t", 1, 7);
  const auto topic = Open("t");
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint32_t partitions, topic->Partitions());
  ASSERT_EQ(partitions, 3u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto logs, topic->Logs(3));
  ASSERT_THAT(logs, SizeIs(3));
  EXPECT_EQ(logs[0].stable_end, 0u);
  EXPECT_EQ(logs[1].begin, 0u);
  EXPECT_EQ(logs[1].stable_end, 7u);
  EXPECT_EQ(logs[1].end, 7u);
  EXPECT_THAT(topic->Cluster(), IsOk());
}

TEST_F(TopicTest, ATopicThatThereIsNotIsNotFound) {
  cluster_.CreateTopic("t", 1);
  rd_kafka_mock_topic_set_error(cluster_.get(), "none", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  EXPECT_THAT(Open("none")->Partitions(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("topic 'none'")));
}

TEST_F(TopicTest, AnotherTopicIsAskedForByItsName) {
  cluster_.CreateTopic("t", 1);
  cluster_.CreateTopic("dead", 2);
  rd_kafka_mock_topic_set_error(cluster_.get(), "none", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  // The mock brokers do not report their settings, so it is not known that they create topics.
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const auto topic,
      Topic::Open(cluster_.config(),
                  {.topic = "t", .group = "g", .timeout = std::chrono::milliseconds(1'000)}));
  EXPECT_THAT(topic->CheckOther("dead"), IsOk());
  EXPECT_THAT(topic->CheckOther("none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("topic 'none'")));
}

TEST_F(TopicTest, ATopicThatMayNotBeReadIsSaidSo) {
  rd_kafka_mock_topic_set_error(cluster_.get(), "t", RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
  EXPECT_THAT(Open("t")->Partitions(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("topic 't'")));
}

TEST_F(TopicTest, BrokersThatDoNotAnswerAreNamed) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const auto topic,
      Topic::Open({{"127.0.0.1:1"}, {}, {}},
                  {.topic = "t", .group = "g", .timeout = std::chrono::milliseconds(1'000)}));
  EXPECT_THAT(topic->Partitions(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("127.0.0.1:1")));
}

TEST(RetentionOfTest, IsNoneWhereRecordsStay) {
  using std::chrono::milliseconds;
  EXPECT_EQ(RetentionOf("604800000", "delete"), milliseconds(604'800'000));
  EXPECT_EQ(RetentionOf("0", "compact,delete"), milliseconds(0));
  EXPECT_EQ(RetentionOf("604800000", "compact"), std::nullopt);
  for (const char* forever : {"-1", "9223372036854775807", "9223372036854775808", "", "abc"}) {
    EXPECT_EQ(RetentionOf(forever, "delete"), std::nullopt) << forever;
  }
  // So arithmetic with it is safe in every unit of time.
  EXPECT_EQ(RetentionOf("31536000000000", "delete"), std::nullopt) << "a thousand years";
}

TEST_F(TopicTest, TellsAGroupHowFarItIs) {
  cluster_.CreateTopic("t", 2);
  const auto topic = Open("t");
  EXPECT_THAT(topic->Commit({{0, 5}, {1, 9}}), IsOk());
  EXPECT_THAT(topic->Commit({}), IsOk());
  rd_kafka_mock_push_request_errors(cluster_.get(), /*OffsetCommit*/ 8, 1,
                                    RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
  EXPECT_THAT(topic->Commit({{0, 6}}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("muster.test")));
}

}  // namespace
}  // namespace muster::kafka
