#include "master/group_core/stalls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/group_core/parts.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using testing::GroupParts;

class StallsTest : public ::testing::Test {
 protected:
  StallsTest() {
    parts.Begin(3);
    parts.work.Begin();
    for (uint64_t i = 0; i < 3; ++i) Say(i, MemberPhase::kReducing);
  }
  void Say(uint64_t i, MemberPhase phase, uint64_t moved = 5) {
    GroupExchangeRequest call = parts.Holding();
    call.phase = phase;
    call.moved = moved;
    parts.Hear(i, call);
  }
  milliseconds Limit() const { return Stalls::kSilences * parts.books.options.silence_limit; }
  auto Judge() { return parts.stalls.Judge(parts.now); }
  /// Until there is a verdict. None: not within ten times the limit.
  std::optional<milliseconds> UntilVerdict() {
    for (milliseconds passed{0}; passed < 10 * Limit(); passed += milliseconds(100)) {
      if (verdict = Judge(); verdict.has_value()) return passed;
      parts.Pass(milliseconds(100));
    }
    return std::nullopt;
  }
  GroupParts parts;
  std::optional<std::string> verdict;
};

TEST_F(StallsTest, WhatMovesNowhereForTheLimitStandsStill) {
  EXPECT_EQ(UntilVerdict(), Limit());
  EXPECT_EQ(verdict, "the sums of step 1 stand still for 30 s");
}

TEST_F(StallsTest, AChunkThatArrivesAnywhereIsProgress) {
  for (uint64_t moved = 6; moved < 20; ++moved) {
    Say(1, MemberPhase::kReducing, moved);
    EXPECT_FALSE(Judge().has_value());
    parts.Pass(Limit() - milliseconds(1));
    EXPECT_FALSE(Judge().has_value());
  }
}

TEST_F(StallsTest, WhileAMemberComputesNobodyAdds) {
  Say(1, MemberPhase::kComputing);
  EXPECT_EQ(UntilVerdict(), std::nullopt);
}

TEST_F(StallsTest, AMemberThatHasNotHeardOfTheAttemptIsNoStall) {
  GroupExchangeRequest call = parts.Holding();
  call.phase = MemberPhase::kReducing;
  call.attempt = AttemptNumber(0);
  parts.Hear(2, call);
  EXPECT_EQ(UntilVerdict(), std::nullopt);
}

TEST_F(StallsTest, AVoteOfOneDoesNotHelpTheOthers) {
  Say(0, MemberPhase::kVoted);
  EXPECT_EQ(UntilVerdict(), Limit());
}

TEST_F(StallsTest, WhereAllHaveVotedTheMasterIsToBlame) {
  for (uint64_t i = 0; i < 3; ++i) Say(i, MemberPhase::kVoted);
  EXPECT_EQ(UntilVerdict(), std::nullopt);
}

TEST_F(StallsTest, EachStallOfAStepIsGivenTwiceTheTime) {
  EXPECT_EQ(UntilVerdict(), Limit());
  EXPECT_EQ(UntilVerdict(), 2 * Limit());
  EXPECT_EQ(UntilVerdict(), 4 * Limit());
  parts.stalls.OnStep();
  EXPECT_EQ(UntilVerdict(), Limit());
}

TEST_F(StallsTest, WithoutAStepInWorkNothingStandsStill) {
  parts.work.Pause();
  EXPECT_EQ(UntilVerdict(), std::nullopt);
}

}  // namespace
}  // namespace muster
