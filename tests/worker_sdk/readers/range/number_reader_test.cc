#include "worker_sdk/readers/range/number_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sharding/shard_order.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using ::muster::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const KeepWaiting kNever = [](std::string_view) -> bool {
  ADD_FAILURE() << "it waits";
  return false;
};

/// The records 3, 4 and 5, then 100 and 101.
ShardWork TwoRuns() {
  return {
      .dataset_name = "train",
      .record_count = 5,
      .minibatch_size = 2,
      .minibatch_count = 3,
      .runs = {{.first_record = 3, .record_count = 3}, {.first_record = 100, .record_count = 2}}};
}

TEST(NumberReaderTest, TheNumbersOfTheRunsInMinibatchesOfEqualSize) {
  const ShardWork work = TwoRuns();
  NumberReader reader;
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords records, reader.Read(work, kNever));
  EXPECT_THAT(records.numbers, ElementsAre(3, 4, 5, 100, 101));
  EXPECT_THAT(records.records, SizeIs(5));
  EXPECT_THAT(records.records, Each(IsEmpty()));
  EXPECT_THAT(records.minibatches, ElementsAre(0, 1, 3, 5));
  EXPECT_THAT(records.header, IsEmpty());
  EXPECT_EQ(records.topic, nullptr);
  EXPECT_EQ(reader.NameOf(work), "records [3, 6) of dataset 'train' and 1 more pieces");
  EXPECT_EQ(reader.LocationOf(work, records, 3), "record 100");
}

TEST(NumberReaderTest, TheyRunInTheOrderOfTheSeedAsLinesDo) {
  ShardWork work = TwoRuns();
  work.runs = {{.first_record = 40, .record_count = 5}};
  work.shuffle_seed = 9;
  NumberReader reader;
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardRecords records, reader.Read(work, kNever));
  std::vector<int64_t> expected;
  for (const uint32_t index : RecordOrder(9, 5)) expected.push_back(40 + index);
  EXPECT_EQ(records.numbers, expected);
  EXPECT_FALSE(std::ranges::is_sorted(records.numbers)) << "the seed of this test shuffles nothing";
  EXPECT_EQ(reader.NameOf(work), "records [40, 45) of dataset 'train'");
  EXPECT_EQ(reader.LocationOf(work, records, 0), "record " + std::to_string(expected[0]));
}

TEST(NumberReaderTest, AShardWithoutEndIsRefused) {
  const uint32_t most = NumberReader::kRecordsMax;
  ShardWork work = TwoRuns();
  work.runs = {{.first_record = 0, .record_count = most + 1}};
  work.record_count = most + 1;
  EXPECT_THAT(NumberReader().Read(work, kNever),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("67108865 record numbers: at most 67108864 can be made")));
}

}  // namespace
}  // namespace muster::sdk
