#include "kafka/range_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/kafka/mock_cluster.h"
#include "tests/support/status_matchers.h"

namespace muster::kafka {
namespace {

using muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RangeReaderTest : public ::testing::Test {
 protected:
  RangeReaderTest() {
    cluster_.CreateTopic("t", 2);
    Open({});
  }
  void Open(RangeReader::Options options) {
    auto reader = RangeReader::Open(cluster_.config(), options);
    EXPECT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
  }
  std::vector<std::string> Read(uint64_t begin, uint64_t end, uint32_t partition = 0) {
    auto records = reader_->Read(RangeOf(begin, end, partition), Always);
    EXPECT_TRUE(records.ok()) << records.status();
    std::vector<std::string> values;
    if (!records.ok()) return values;
    for (const Record& record : (*records)->all()) values.emplace_back(record.value);
    return values;
  }

  RangeReader::Range RangeOf(uint64_t begin, uint64_t end, uint32_t partition = 0) const {
    return {.topic = "t",
            .partition = partition,
            .begin = begin,
            .end = end,
            .record_bytes_max = record_bytes_max_};
  }

  MockCluster cluster_{2};
  uint64_t record_bytes_max_ = 1'000'000;
  std::unique_ptr<RangeReader> reader_;
};

TEST_F(RangeReaderTest, ARecordHasAllThatItWasWrittenWith) {
  cluster_.Produce("t", 0, 2, 7);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto records, reader_->Read(RangeOf(0, 2, 0), Always));
  ASSERT_THAT(records->all(), SizeIs(2));
  const Record& record = records->all()[1];
  EXPECT_EQ(record.value, "r8");
  EXPECT_EQ(record.key, "k8");
  EXPECT_TRUE(record.has_value);
  EXPECT_EQ(record.offset, 1u);
  EXPECT_GT(record.timestamp, std::chrono::hours(24 * 365 * 50));
  const auto headers = records->HeadersOf(1);
  ASSERT_THAT(headers, SizeIs(1));
  EXPECT_EQ(headers[0].first, "n");
  EXPECT_EQ(headers[0].second, "8");
}

TEST_F(RangeReaderTest, RangesInAnyOrderAreReadAsTheyAre) {
  cluster_.Produce("t", 0, 30);
  cluster_.Produce("t", 1, 5, 100);
  EXPECT_THAT(Read(0, 3), ElementsAre("r0", "r1", "r2"));
  EXPECT_THAT(Read(3, 5), ElementsAre("r3", "r4")) << "read on";
  EXPECT_THAT(Read(3, 5), ElementsAre("r3", "r4")) << "back";
  EXPECT_THAT(Read(10, 12), ElementsAre("r10", "r11")) << "skipped what was read ahead";
  EXPECT_THAT(Read(1, 3, 1), ElementsAre("r101", "r102"));
  EXPECT_THAT(Read(28, 30), ElementsAre("r28", "r29")) << "up to the log's end";
  EXPECT_THAT(Read(12, 14), ElementsAre("r12", "r13"));
}

TEST_F(RangeReaderTest, SeveralThreadsReadOnePartition) {
  cluster_.Produce("t", 0, 400);
  std::vector<std::thread> threads;
  std::atomic<uint64_t> records = 0;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t begin = i * 20; begin < 400; begin += 80) {
        auto read = reader_->Read(RangeOf(begin, begin + 20, 0), Always);
        ASSERT_TRUE(read.ok()) << read.status();
        ASSERT_THAT((*read)->all(), SizeIs(20));
        ASSERT_EQ((*read)->all().front().offset, begin);
        records += 20;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(records, 400u);
}

TEST_F(RangeReaderTest, WaitsForRecordsAndBrokersAndCanBeStopped) {
  cluster_.Produce("t", 0, 1);
  int asked = 0;
  const auto stop_at_once = [&](std::string_view) { return ++asked < 2; };
  EXPECT_THAT(reader_->Read(RangeOf(0, 2, 0), stop_at_once),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("topic 't'")));
  // Records that were read without use are read again.
  const auto produce = [&](std::string_view) {
    if (asked++ == 2) cluster_.Produce("t", 0, 1, 1);
    return true;
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto records, reader_->Read(RangeOf(0, 2, 0), produce));
  EXPECT_THAT(records->all(), SizeIs(2));
}

TEST_F(RangeReaderTest, ALeaderThatMovesIsFollowed) {
  cluster_.Produce("t", 0, 10);
  rd_kafka_mock_partition_set_leader(cluster_.get(), "t", 0, 1);
  EXPECT_THAT(Read(0, 5), SizeIs(5));
  rd_kafka_mock_partition_set_leader(cluster_.get(), "t", 0, 2);
  EXPECT_THAT(Read(5, 10), SizeIs(5));
  Open({});
  EXPECT_THAT(Read(5, 10), SizeIs(5));
}

TEST_F(RangeReaderTest, ABrokerThatWasDownIsWaitedFor) {
  cluster_.Produce("t", 0, 10);
  rd_kafka_mock_partition_set_leader(cluster_.get(), "t", 0, 1);
  rd_kafka_mock_broker_set_down(cluster_.get(), 1);
  std::string trouble;
  const auto wait = [&](std::string_view what) {
    if (!what.empty() && trouble.empty()) {
      trouble = what;
      rd_kafka_mock_broker_set_up(cluster_.get(), 1);
    }
    return true;
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto records, reader_->Read(RangeOf(0, 10, 0), wait));
  EXPECT_THAT(records->all(), SizeIs(10));
  EXPECT_THAT(trouble, HasSubstr("127.0.0.1"));
}

TEST_F(RangeReaderTest, OffsetsThatAreGoneAreAnErrorAndNeverJumpedOver) {
  // The mock keeps 5 MiB of a partition.
  const std::string large(200'000, 'x');
  cluster_.Produce("t", 0, 60, 0, large);
  EXPECT_THAT(reader_->Read(RangeOf(0, 5, 0), Always),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("topic 't', partition 0, offsets [0, 5)"),
                             HasSubstr("no longer have records"))));
  EXPECT_THAT(Read(58, 60), SizeIs(2)) << "the others are there";
}

TEST_F(RangeReaderTest, RecordsMayBeHeldWhenTheirConsumerHasGone) {
  Open({.fetched_max = 1});
  cluster_.Produce("t", 0, 2);
  cluster_.Produce("t", 1, 2, 100);
  std::unique_ptr<Records> held;
  // While one consumer waits another one reads; of the two that come back the latter goes.
  const auto read_other = [&](std::string_view) {
    if (held != nullptr) return true;
    held = std::move(reader_->Read(RangeOf(0, 2, 1), Always)).value();
    cluster_.Produce("t", 0, 2, 2);
    return true;
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto records, reader_->Read(RangeOf(0, 4, 0), read_other));
  EXPECT_THAT(records->all(), SizeIs(4));
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(held->all()[1].value, "r101");
}

TEST_F(RangeReaderTest, WhatFailsBehindARangeIsNoneOfItsTrouble) {
  record_bytes_max_ = 100;
  cluster_.Produce("t", 0, 2);
  cluster_.Produce("t", 0, 1, 2, std::string(200, 'x'));
  cluster_.Produce("t", 0, 1, 3);
  EXPECT_THAT(Read(0, 2), SizeIs(2));
  EXPECT_THAT(Read(3, 4), SizeIs(1));
}

TEST_F(RangeReaderTest, ARecordThatIsTooLargeIsNamed) {
  record_bytes_max_ = 100;
  cluster_.Produce("t", 0, 2);
  cluster_.Produce("t", 0, 1, 2, std::string(200, 'x'));
  EXPECT_THAT(Read(0, 2), SizeIs(2));
  EXPECT_THAT(reader_->Read(RangeOf(2, 3, 0), Always),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("offset 2"), HasSubstr("kafka.recordBytesMax is 100"))));
}

TEST_F(RangeReaderTest, RightsThatAreMissingAreWaitedFor) {
  cluster_.Produce("t", 0, 3);
  rd_kafka_mock_push_request_errors(cluster_.get(), /*Fetch*/ 1, 2,
                                    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
                                    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
  EXPECT_THAT(Read(0, 3), SizeIs(3));
}

}  // namespace
}  // namespace muster::kafka
