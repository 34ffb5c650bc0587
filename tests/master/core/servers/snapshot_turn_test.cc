#include "master/core/servers/snapshot_turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr seconds kInterval(8);

/// The seconds of (100, 116] in which the turn came.
std::vector<int> SecondsOf(const SnapshotTurn& turn) {
  std::vector<int> found;
  for (int second = 101; second <= 116; ++second) {
    if (turn.Came(TimePoint(seconds(second - 1)), TimePoint(seconds(second)), kInterval)) {
      found.push_back(second);
    }
  }
  return found;
}

TEST(SnapshotTurnTest, PartitionsHaveTheirTurnsOneAfterTheOther) {
  EXPECT_THAT(SecondsOf({0, 1, 0, 4}), ElementsAre(104, 112));
  EXPECT_THAT(SecondsOf({0, 1, 1, 4}), ElementsAre(106, 114));
  EXPECT_THAT(SecondsOf({0, 1, 2, 4}), ElementsAre(108, 116));
  EXPECT_THAT(SecondsOf({0, 1, 3, 4}), ElementsAre(102, 110));
}

TEST(SnapshotTurnTest, ServersTakeTurns) {
  EXPECT_THAT(SecondsOf({0, 2, 0, 4}), ElementsAre(104, 112));
  EXPECT_THAT(SecondsOf({1, 2, 0, 4}), ElementsAre(105, 113));
  EXPECT_THAT(SecondsOf({0, 2, 1, 4}), ElementsAre(106, 114));
  EXPECT_THAT(SecondsOf({1, 2, 3, 4}), ElementsAre(103, 111));
}

TEST(SnapshotTurnTest, OfAnyIntervalOneTurnIsMissedWhoeverLooksHowOften) {
  const SnapshotTurn turn(2, 3, 70, 100);
  for (int begin = 0; begin < 9'000; begin += 37) {
    const TimePoint last{milliseconds(begin)};
    EXPECT_TRUE(turn.Came(last, last + kInterval, kInterval)) << begin;
    int turns = 0;
    for (int look = 0; look < 8'000; look += 200) {
      const TimePoint before = last + milliseconds(look);
      turns += turn.Came(before, before + milliseconds(200), kInterval) ? 1 : 0;
    }
    EXPECT_EQ(turns, 1) << begin;
  }
}

TEST(SnapshotTurnTest, TheExtremesDoNotOverflow) {
  const TimePoint last{hours(24 * 365 * 20)};
  const SnapshotTurn turn(255, 256, 65'535, 65'536);
  EXPECT_TRUE(turn.Came(last, last + hours(24), hours(24)));
  EXPECT_FALSE(turn.Came(last, last, hours(24)));
  EXPECT_TRUE(turn.Came(last, last, nanoseconds(0))) << "always";
}

}  // namespace
}  // namespace muster
