#include "worker_sdk/readers/topic/topic_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "tests/kafka/mock_cluster.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const KeepWaiting kWait = [](std::string_view) { return true; };

std::vector<size_t> Cut(uint64_t offsets, uint32_t minibatches, std::vector<uint64_t> positions) {
  return CutByOffset(offsets, minibatches, positions);
}

TEST(CutByOffsetTest, MinibatchesAreEqualPartsOfTheOffsetsNotOfTheRecords) {
  EXPECT_THAT(Cut(10, 3, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), ElementsAre(0, 3, 6, 10));
  EXPECT_THAT(Cut(10, 3, {0, 3, 4, 9}), ElementsAre(0, 1, 3, 4));
}

TEST(CutByOffsetTest, AMinibatchMayHaveNoRecord) {
  EXPECT_THAT(Cut(12, 3, {9}), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(Cut(12, 3, {}), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Cut(12, 3, {3}), ElementsAre(0, 1, 1, 1));
}

class TopicReaderTest : public ::testing::Test {
 protected:
  TopicReaderTest() {
    cluster_.CreateTopic("clicks", 1);
    cluster_.CreateTopic("dead", 1);
    work_.dataset_name = "train";
    work_.minibatch_size = 2;
    work_.minibatch_count = 2;
    work_.stream = {"clicks", {{TopicPartition(0), 1, 4}}};
    topic_.dataset = "train";
    topic_.brokers = cluster_.config().brokers;
    topic_.group = "muster.test";
    topic_.record_bytes_max = 1'000;
  }
  absl::StatusOr<ShardRecords> Read(TopicReader* reader) { return reader->Read(work_, kWait); }

  kafka::MockCluster cluster_;
  ShardWork work_;
  TopicSource topic_;
};

TEST_F(TopicReaderTest, ShardsMayBeAnnounced) {
  cluster_.Produce("clicks", 0, 5);
  TopicReader reader({topic_});
  ShardWork unknown = work_;
  unknown.dataset_name = "other";
  const std::vector<ShardWork> soon = {work_, unknown, work_};
  reader.Expect(soon);
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords records, Read(&reader));
  EXPECT_THAT(records.records, ElementsAre("r1", "r2", "r3"));
}

TEST_F(TopicReaderTest, DatasetsOfOneClusterShareAClientAndHaveTheirOwnLimits) {
  cluster_.CreateTopic("views", 1);
  cluster_.Produce("clicks", 0, 5);
  cluster_.Produce("views", 0, 5);
  TopicSource small = topic_;
  small.dataset = "small";
  small.record_bytes_max = 1;
  TopicReader reader({topic_, small});
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords records, Read(&reader));
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const auto before = threads();
  work_.dataset_name = "small";
  work_.stream->topic = "views";
  EXPECT_THAT(Read(&reader).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("recordBytesMax is 1")));
  EXPECT_LE(threads(), before);
}

TEST_F(TopicReaderTest, ReadsAShard) {
  cluster_.Produce("clicks", 0, 5);
  TopicReader reader({topic_});
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords records, Read(&reader));
  EXPECT_THAT(records.records, ElementsAre("r1", "r2", "r3"));
  EXPECT_THAT(records.minibatches, ElementsAre(0, 1, 3));
  ASSERT_NE(records.topic, nullptr);
  EXPECT_EQ(records.topic->At(2).key, "k3");
  EXPECT_EQ(reader.LocationOf(work_, records, 2), "clicks[0]@3");
}

TEST_F(TopicReaderTest, AShardHasTheRangesOfSeveralPartitionsOneAfterTheOther) {
  cluster_.CreateTopic("views", 3);
  cluster_.Produce("views", 0, 2);
  cluster_.Produce("views", 2, 4);
  work_.stream = {"views", {{TopicPartition(2), 1, 4}, {TopicPartition(0), 0, 2}}};
  TopicReader reader({topic_});
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords records, Read(&reader));
  EXPECT_THAT(records.records, ElementsAre("r1", "r2", "r3", "r0", "r1"));
  EXPECT_THAT(records.minibatches, ElementsAre(0, 2, 5));
  EXPECT_EQ(records.topic->PartitionOf(2), TopicPartition(2));
  EXPECT_EQ(records.topic->PartitionOf(3), TopicPartition(0));
  EXPECT_EQ(reader.LocationOf(work_, records, 4), "views[0]@1");
  EXPECT_EQ(reader.NameOf(work_), "offsets [1, 4) of topic views[2] and 1 more range");
}

TEST_F(TopicReaderTest, WrongSettingsAreNoShardsFault) {
  topic_.secrets["sasl.password"] = "env:MUSTER_TEST_NO_SUCH";
  TopicReader reader({topic_});
  EXPECT_THAT(Read(&reader), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("dataset 'train': the setting sasl.password")));
}

TEST_F(TopicReaderTest, ATopicThatTheMasterDidNotNameIsAnError) {
  TopicReader reader({});
  EXPECT_THAT(Read(&reader), StatusIs(absl::StatusCode::kInternal, HasSubstr("'train'")));
  EXPECT_FALSE(reader.KeepsRejected(work_));
}

TEST_F(TopicReaderTest, ARecordThatIsTooLargeIsTheShards) {
  cluster_.Produce("clicks", 0, 5);
  topic_.record_bytes_max = 1;
  TopicReader reader({topic_});
  EXPECT_THAT(Read(&reader),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kafka.recordBytesMax")));
}

TEST_F(TopicReaderTest, RejectedRecordsAreWrittenWithWhereTheyCameFrom) {
  cluster_.Produce("clicks", 0, 5);
  const RejectedRecord rejected{2, "not a number"};
  {
    TopicReader reader({topic_});
    MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords records, Read(&reader));
    EXPECT_FALSE(reader.KeepsRejected(work_));
    EXPECT_THAT(reader.WriteRejected(work_, records, {&rejected, 1}, kWait), IsOk())
        << "there is no such topic";
  }
  topic_.dead_letter_topic = "dead";
  TopicReader reader({topic_});
  EXPECT_TRUE(reader.KeepsRejected(work_));
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords from, Read(&reader));
  ASSERT_THAT(reader.WriteRejected(work_, from, {&rejected, 1}, kWait), IsOk());
  work_.stream = {"dead", {{TopicPartition(0), 0, 1}}};
  work_.minibatch_count = 1;
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords records, Read(&reader));
  EXPECT_THAT(records.records, ElementsAre("r3"));
  EXPECT_EQ(records.topic->At(0).key, "k3");
  const auto headers = records.topic->HeadersOf(0);
  ASSERT_THAT(headers, SizeIs(4));
  EXPECT_EQ(headers[0].second, "not a number");
  EXPECT_EQ(headers[1].second, "clicks");
  EXPECT_EQ(headers[3].second, "3");
}

TEST_F(TopicReaderTest, ARejectedRecordThatIsTooLargeForTheBrokersIsWrittenWithoutItsValue) {
  cluster_.Produce("clicks", 0, 5);
  topic_.dead_letter_topic = "dead";
  TopicReader reader({topic_});
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords from, Read(&reader));
  cluster_.FailWrites(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1);
  const RejectedRecord rejected{2, "not a number"};
  ASSERT_THAT(reader.WriteRejected(work_, from, {&rejected, 1}, kWait), IsOk());
  work_.stream = {"dead", {{TopicPartition(0), 0, 1}}};
  work_.minibatch_count = 1;
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords records, Read(&reader));
  EXPECT_FALSE(records.topic->At(0).has_value);
  EXPECT_EQ(records.topic->HeadersOf(0).back().first, "muster.bytes");
  EXPECT_EQ(records.topic->HeadersOf(0).back().second, "2");
}

TEST_F(TopicReaderTest, ARejectedRecordThatMayNotBeWrittenIsNoShardsFault) {
  cluster_.Produce("clicks", 0, 5);
  topic_.dead_letter_topic = "dead";
  TopicReader reader({topic_});
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords from, Read(&reader));
  cluster_.FailWrites(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 1);
  const RejectedRecord rejected{2, "not a number"};
  // An answer that is only slow is waited for.
  const auto until_refused = [](std::string_view trouble) {
    return trouble.find("authoriz") == std::string_view::npos;
  };
  EXPECT_THAT(reader.WriteRejected(work_, from, {&rejected, 1}, until_refused),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("authoriz")));
}

}  // namespace
}  // namespace muster::sdk
