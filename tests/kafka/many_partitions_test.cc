// RangeReader on many topic partitions at once: one client, and the faults of one partition are not
// those of another one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "kafka/range_reader.h"
#include "tests/kafka/mock_cluster.h"
#include "tests/support/status_matchers.h"

namespace muster::kafka {
namespace {

using muster::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int kPartitions = 100;

class ManyPartitionsTest : public ::testing::Test {
 protected:
  ManyPartitionsTest() { cluster_.CreateTopic("t", kPartitions); }
  void Open(RangeReader::Options options) {
    auto reader = RangeReader::Open(cluster_.config(), options);
    EXPECT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
  }
  void ProduceToAll(uint64_t count, uint64_t first = 0) {
    for (int p = 0; p < kPartitions; ++p) cluster_.Produce("t", p, count, first);
  }
  /// Reads offsets [begin, end) of a partition, to which "r<offset>" was written.
  void ReadsAsWritten(uint32_t partition, uint64_t begin, uint64_t end) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto records,
                                reader_->Read({"t", partition, begin, end}, Always));
    ASSERT_THAT(records->all(), SizeIs(end - begin));
    for (uint64_t i = 0; i < end - begin; ++i) {
      EXPECT_EQ(records->all()[i].value, "r" + std::to_string(begin + i));
    }
  }
  static size_t Threads() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
  }

  MockCluster cluster_{2};
  std::unique_ptr<RangeReader> reader_;
};

TEST_F(ManyPartitionsTest, AllAreReadWithTheThreadsOfOneClient) {
  ProduceToAll(4);
  Open({});
  ReadsAsWritten(0, 0, 2);
  ReadsAsWritten(1, 0, 2);
  const size_t threads = Threads();
  for (uint32_t p = 2; p < kPartitions; ++p) ReadsAsWritten(p, 0, 2);
  for (uint32_t p = 0; p < kPartitions; ++p) ReadsAsWritten(p, 2, 4);
  EXPECT_LE(Threads(), threads);
}

TEST_F(ManyPartitionsTest, MoreThanMayBeFetchedAtOnceAreReadByTurns) {
  ProduceToAll(8);
  Open({.fetched_max = 2});
  for (uint64_t begin = 0; begin < 8; begin += 2) {
    for (uint32_t p = 0; p < 20; ++p) ReadsAsWritten(p, begin, begin + 2);
  }
}

TEST_F(ManyPartitionsTest, WhatIsNotUsedIsDroppedAndFetchedAgain) {
  ProduceToAll(8);
  Open({.unused_max = std::chrono::milliseconds(0)});
  for (uint64_t begin = 0; begin < 8; begin += 2) {
    for (uint32_t p = 0; p < 10; ++p) ReadsAsWritten(p, begin, begin + 2);
  }
}

TEST_F(ManyPartitionsTest, AnnouncedRangesAreReadAsTheyAre) {
  ProduceToAll(6);
  Open({});
  std::vector<RangeReader::Range> ranges;
  for (uint32_t p = 0; p < 40; ++p) ranges.push_back({"t", p, 2, 4});
  ranges.push_back({"t", 0, 4, 6});  // the second one of its partition
  ranges.push_back({"none", 0, 0, 1});
  reader_->Expect(ranges);
  reader_->Expect(ranges);
  // In any order, and others before them.
  ReadsAsWritten(39, 0, 2);
  for (uint32_t p = 40; p-- > 0;) ReadsAsWritten(p, 2, 4);
  ReadsAsWritten(0, 4, 6);
  ReadsAsWritten(39, 4, 6);
}

TEST_F(ManyPartitionsTest, AnnouncedRangesThatNobodyReadsAreNoObstacle) {
  ProduceToAll(4);
  Open({.fetched_max = 4, .unused_max = std::chrono::hours(1)});
  for (uint32_t p = 0; p < 40; ++p) {
    const RangeReader::Range announced{"t", p, 0, 2};
    reader_->Expect({&announced, 1});
  }
  for (uint32_t p = 40; p < 60; ++p) ReadsAsWritten(p, 0, 4);
  ReadsAsWritten(0, 1, 3);
}

TEST_F(ManyPartitionsTest, APartitionThatIsMissingDoesNotDelayOthers) {
  ProduceToAll(4);
  Open({});
  bool others = false;
  std::string trouble;
  const auto read_others = [&](std::string_view what) {
    if (what.empty()) return true;
    trouble = what;
    for (uint32_t p = 0; p < 10; ++p) ReadsAsWritten(p, 0, 4);
    others = true;
    return false;
  };
  EXPECT_THAT(reader_->Read({"t", kPartitions + 1, 0, 1}, read_others),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("topic 't'")));
  EXPECT_TRUE(others);
  EXPECT_THAT(trouble, HasSubstr("nknown partition"));
}

TEST_F(ManyPartitionsTest, OffsetsThatAreGoneFailTheirPartitionOnly) {
  ProduceToAll(4);
  // The mock keeps 5 MiB of a partition.
  cluster_.Produce("t", 3, 60, 4, std::string(200'000, 'x'));
  Open({});
  std::vector<RangeReader::Range> ranges;
  for (uint32_t p = 0; p < 6; ++p) ranges.push_back({"t", p, 0, 4});
  reader_->Expect(ranges);
  for (uint32_t p = 0; p < 6; ++p) {
    if (p != 3) ReadsAsWritten(p, 0, 4);
  }
  EXPECT_THAT(reader_->Read({"t", 3, 0, 4}, Always),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("partition 3, offsets [0, 4)")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto records, reader_->Read({"t", 3, 62, 64}, Always));
  EXPECT_THAT(records->all(), SizeIs(2)) << "the others of it are there";
}

TEST_F(ManyPartitionsTest, AnErrorAboutEarlierOffsetsIsNotTheNextRange) {
  cluster_.Produce("t", 3, 60, 0, std::string(200'000, 'x'));
  cluster_.Produce("t", 0, 1);
  for (const int32_t p : {0, 3}) rd_kafka_mock_partition_set_leader(cluster_.get(), "t", p, 1);
  Open({});
  for (int i = 0; i < 20; ++i) {
    const RangeReader::Range gone{"t", 3, 0, 4};
    reader_->Expect({&gone, 1});
    // The announced offsets are gone. When this has arrived, so has the error.
    ReadsAsWritten(0, 0, 1);
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto records, reader_->Read({"t", 3, 58, 60}, Always));
    EXPECT_THAT(records->all(), SizeIs(2)) << "what is read is there";
  }
}

TEST_F(ManyPartitionsTest, ALeaderThatMovesIsFollowedByItsPartition) {
  ProduceToAll(4);
  Open({});
  for (int32_t p = 0; p < 4; ++p) {
    rd_kafka_mock_partition_set_leader(cluster_.get(), "t", p, 1);
    ReadsAsWritten(static_cast<uint32_t>(p), 0, 2);
  }
  rd_kafka_mock_partition_set_leader(cluster_.get(), "t", 2, 2);
  for (uint32_t p = 0; p < 4; ++p) ReadsAsWritten(p, 2, 4);
}

TEST_F(ManyPartitionsTest, AnErrorOfAFetchIsWaitedOutByAll) {
  ProduceToAll(4);
  Open({});
  ReadsAsWritten(0, 0, 4);
  rd_kafka_mock_push_request_errors(
      cluster_.get(), /*Fetch*/ 1, 3, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
      RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  for (uint32_t p = 0; p < 4; ++p) ReadsAsWritten(p, 0, 4);
}

TEST_F(ManyPartitionsTest, AClientThatGetsNothingIsReplaced) {
  ProduceToAll(2);
  Open({.renew_after = std::chrono::milliseconds(20)});
  std::unique_ptr<Records> held;
  int asked = 0;
  const auto produce_late = [&](std::string_view) {
    if (held == nullptr) held = std::move(reader_->Read({"t", 1, 0, 2}, Always)).value();
    if (++asked == 12) cluster_.Produce("t", 0, 2, 2);
    return true;
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto records, reader_->Read({"t", 0, 0, 4}, produce_late));
  EXPECT_THAT(records->all(), SizeIs(4)) << "none is there twice";
  EXPECT_EQ(held->all()[1].value, "r1");
}

TEST_F(ManyPartitionsTest, ThreadsReadDifferentPartitionsAtTheSameTime) {
  ProduceToAll(40);
  Open({.fetched_max = 8});
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t begin = 0; begin < 40; begin += 10) {
        for (uint32_t p = thread; p < 24; p += 2) ReadsAsWritten(p, begin, begin + 10);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace muster::kafka
