#include "sharding/stream/stream_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::StatusIs;
using Kind = StreamBound::Kind;

StreamBound Plain(Kind kind) {
  return {.kind = kind, .time = {}, .offsets = {}};
}
StreamBound Time(milliseconds time) {
  return {.kind = Kind::kTime, .time = time, .offsets = {}};
}
StreamBound Offsets(std::map<uint32_t, uint64_t> offsets) {
  return {.kind = Kind::kOffsets, .time = {}, .offsets = std::move(offsets)};
}

/// Topic partition 0 with [10, 50), and 1 with [0, 5), where the dataset may know some already.
class StreamBoundsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<PartitionLook>> Resolve(const StreamBound& start,
                                                     const StreamBound& end) {
    return ResolveStamps({start, end, known_, now_, end_time_asked_, over_}, logs_);
  }
  std::vector<PartitionLook> Looks(const StreamBound& start, const StreamBound& end) {
    auto looks = Resolve(start, end);
    EXPECT_TRUE(looks.ok()) << looks.status();
    return looks.ok() ? *looks : std::vector<PartitionLook>(2);
  }

  std::vector<StreamLog> logs_{{TopicPartition(0), 10, 50, 50, {}, {}},
                               {TopicPartition(1), 0, 5, 5, {}, {}}};
  bool end_time_asked_ = true;
  bool over_ = false;
  std::set<TopicPartition> known_;
  milliseconds now_{seconds(1'000)};
};

TEST_F(StreamBoundsTest, FromTheOldestRecordForEver) {
  const auto looks = Looks(Plain(Kind::kEarliest), Plain(Kind::kNever));
  EXPECT_EQ(looks[0].log_begin, 10u);
  EXPECT_EQ(looks[0].stable_end, 50u);
  EXPECT_EQ(looks[0].begin, std::nullopt);
  EXPECT_EQ(looks[0].end, std::nullopt);
}

TEST_F(StreamBoundsTest, LatestAndNowAreTheEndAtTheFirstLook) {
  const auto looks = Looks(Plain(Kind::kLatest), Plain(Kind::kNow));
  EXPECT_EQ(looks[0].begin, 50u);
  EXPECT_EQ(looks[1].end, 5u);
}

// Records that were committed behind an open transaction are there, and cannot be read yet.
TEST_F(StreamBoundsTest, WhatIsThereNowIsWhatAnOpenTransactionHoldsBackToo) {
  logs_[0].end = 75;
  const auto looks = Looks(Plain(Kind::kLatest), Plain(Kind::kNow));
  EXPECT_EQ(looks[0].end, 75u);
  EXPECT_EQ(looks[0].begin, 50u) << "what the transaction decides later comes after the start";
  EXPECT_EQ(looks[0].log_end, 75u);
  EXPECT_EQ(looks[1].end, 5u);
}

TEST_F(StreamBoundsTest, AStartThatTheLogDoesNotReachIsRefused) {
  logs_[0].end = 75;
  EXPECT_EQ(Looks(Offsets({{0, 75}, {1, 5}}), Plain(Kind::kNever))[0].begin, 75u)
      << "with what comes";
  EXPECT_THAT(Resolve(Offsets({{0, 76}, {1, 5}}), Plain(Kind::kNever)),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("kafka.start names offset 76 of partition 0, whose log ends at "
                                 "offset 75")));
}

TEST_F(StreamBoundsTest, AnEndBeforeTheBeginIsRefused) {
  EXPECT_THAT(Resolve(Plain(Kind::kEarliest), Offsets({{0, 9}, {1, 5}})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("kafka.end names offset 9 of partition 0, where the dataset "
                                 "begins at offset 10")));
  EXPECT_EQ(Looks(Plain(Kind::kEarliest), Offsets({{0, 10}, {1, 0}}))[0].end, 10u);
  // Records that are gone are FAILED ranges, which say so.
  EXPECT_EQ(Looks(Offsets({{0, 2}, {1, 0}}), Offsets({{0, 9}, {1, 5}}))[0].end, 9u);
}

TEST_F(StreamBoundsTest, TimesAreTheFirstRecordsThatAreNotOlder) {
  logs_[0].at_start_time = 20;
  logs_[0].at_end_time = 40;
  const auto looks = Looks(Time(seconds(1)), Time(seconds(999)));
  EXPECT_EQ(looks[0].begin, 20u);
  EXPECT_EQ(looks[0].end, 40u);
  EXPECT_EQ(looks[1].begin, 5u) << "all records are older";
  EXPECT_EQ(looks[1].end, std::nullopt) << "one that is not may still come";
  now_ += seconds(74);
  EXPECT_EQ(Looks(Time(seconds(1)), Time(seconds(999)))[1].end, 5u);
}

TEST_F(StreamBoundsTest, AnEndTimeIsFoundLaterToo) {
  known_ = {TopicPartition(0), TopicPartition(1)};
  logs_[1].at_end_time = 4;
  const auto looks = Looks(Plain(Kind::kEarliest), Time(seconds(5'000)));
  EXPECT_EQ(looks[0].end, std::nullopt);
  EXPECT_EQ(looks[1].end, 4u);
}

TEST_F(StreamBoundsTest, OffsetsMustNameEachPartitionThatThereIs) {
  const auto looks = Looks(Offsets({{0, 12}, {1, 1}}), Offsets({{0, 30}, {1, 900}}));
  EXPECT_EQ(looks[0].begin, 12u);
  EXPECT_EQ(looks[1].end, 900u);
  EXPECT_THAT(Resolve(Offsets({{0, 12}}), Plain(Kind::kNever)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("partition 1, for which kafka.start")));
  EXPECT_THAT(Resolve(Plain(Kind::kEarliest), Offsets({{0, 12}, {1, 2}, {7, 3}})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("kafka.end names an offset for partition 7")));
}

TEST_F(StreamBoundsTest, APartitionThatComesLaterIsReadFromItsBeginUnlessTheEndIsSettled) {
  known_ = {TopicPartition(0)};
  auto looks = Looks(Plain(Kind::kLatest), Plain(Kind::kNever));
  EXPECT_EQ(looks[1].begin, std::nullopt);
  EXPECT_EQ(looks[1].end, std::nullopt);
  looks = Looks(Plain(Kind::kLatest), Plain(Kind::kNow));
  EXPECT_EQ(looks[1].end, 0u);
  EXPECT_EQ(looks[0].end, std::nullopt) << "settled at the first look";
}

TEST_F(StreamBoundsTest, AnEndNamesThePartitionsThatComeLaterTooOrThereIsNone) {
  known_ = {TopicPartition(0)};
  EXPECT_THAT(
      Resolve(Offsets({{0, 12}}), Offsets({{0, 13}})),
      StatusIs(
          absl::StatusCode::kFailedPrecondition,
          HasSubstr("the topic was given a partition 1, for which kafka.end names no offset")));
  over_ = true;
  const auto looks = Looks(Offsets({{0, 12}}), Offsets({{0, 13}}));
  ASSERT_EQ(looks.size(), 2u);
  EXPECT_EQ(looks[1].end, 0u);
}

}  // namespace
}  // namespace muster
