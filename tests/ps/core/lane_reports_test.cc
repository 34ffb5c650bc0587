#include "ps/core/lane_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using Hanging = LaneReports::Hanging;

constexpr nanoseconds kGoes{0};

class LaneReportsTest : public ::testing::Test {
 protected:
  bool Answer(size_t lane, uint64_t sequence) {
    return reports_.Answered(lane, {.sequence = sequence});
  }
  nanoseconds Wait(Hanging hanging = Hanging::kAreAwaited) const {
    return reports_.Wait(now_, hanging);
  }
  std::vector<uint64_t> Take() {
    std::vector<uint64_t> sequences;
    for (const LaneReport& report : reports_.Take()) sequences.push_back(report.sequence);
    return sequences;
  }

  TimePoint now_{seconds(1'000)};
  LaneReports reports_{{.patience = milliseconds(100), .silence_max = seconds(30)}, 3};
};

TEST_F(LaneReportsTest, AnExchangeWaitsForEveryLane) {
  EXPECT_THAT(reports_.Begin(now_), ElementsAre(0, 1, 2));
  EXPECT_EQ(Wait(), milliseconds(100));
  EXPECT_FALSE(Answer(1, 1));
  now_ += milliseconds(40);
  EXPECT_FALSE(Answer(0, 1));
  EXPECT_EQ(Wait(), milliseconds(60)) << "two of three have answered";
  EXPECT_FALSE(Answer(2, 1));
  EXPECT_EQ(Wait(), kGoes);
  EXPECT_THAT(Take(), ElementsAre(1, 1, 1));
}

TEST_F(LaneReportsTest, ABusyLaneIsAskedOnceAndItsEarlierReportIsRepeated) {
  reports_.Begin(now_);
  for (size_t lane = 0; lane < 3; ++lane) Answer(lane, 1);
  Take();
  reports_.Begin(now_);
  Answer(0, 2);
  Answer(2, 2);
  now_ += milliseconds(100);
  EXPECT_EQ(Wait(), kGoes);
  EXPECT_THAT(Take(), ElementsAre(2, 1, 2));
  EXPECT_THAT(reports_.Begin(now_), ElementsAre(0, 2));
  EXPECT_FALSE(Answer(0, 3)) << "it was not late";
  EXPECT_TRUE(Answer(1, 2)) << "an exchange went without it";
  EXPECT_FALSE(Answer(2, 3));
  EXPECT_THAT(Take(), ElementsAre(3, 2, 3)) << "its answer to the earlier question";
  EXPECT_THAT(reports_.Begin(now_), ElementsAre(0, 1, 2));
}

TEST_F(LaneReportsTest, ALaneThatHangsEndsTheExchangesUntilItReports) {
  now_ += seconds(100);  // a lane that was not asked does not hang
  reports_.Begin(now_);
  Answer(0, 1);
  Answer(2, 1);
  EXPECT_EQ(Wait(), milliseconds(100));
  now_ += milliseconds(100);
  EXPECT_EQ(Wait(), kGoes);
  Take();
  now_ += milliseconds(29'899);
  EXPECT_THAT(reports_.Begin(now_), ElementsAre(0, 2));
  Answer(0, 2);
  Answer(2, 2);
  EXPECT_EQ(Wait(), milliseconds(100)) << "busy, and not yet hanging";
  now_ += milliseconds(1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_GT(Wait(), kGoes) << "it was asked 30 s ago";
    now_ += seconds(100);
  }
  EXPECT_EQ(Wait(Hanging::kAreNot), kGoes)
      << "told to end, the server waits for no lane that hangs";
  EXPECT_TRUE(Answer(1, 1));
  EXPECT_EQ(Wait(), kGoes);
}

}  // namespace
}  // namespace muster::ps
