#include "master/group_core/state_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/group_core/parts.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using testing::GroupParts;
using ::testing::IsEmpty;
using ::testing::Pair;

class StateChecksTest : public ::testing::Test {
 protected:
  void Begin(uint64_t members) {
    parts.Begin(members);
    parts.DoStep();
  }
  /// Worker i tells the digest of the newest state, or of the one before it.
  void Tell(uint64_t i, uint64_t digest, uint64_t missed = 0) {
    GroupExchangeRequest call = parts.Holding();
    call.digest = StateDigest{*parts.Holding(missed).state, digest};
    parts.Hear(i, call);
  }
  auto Judge() { return StateChecks(&parts.books).Judge(); }
  GroupParts parts;
};

TEST_F(StateChecksTest, EqualStatesAreRight) {
  Begin(3);
  EXPECT_FALSE(Judge().has_value());
  for (uint64_t i = 0; i < 3; ++i) {
    Tell(i, 5);
    EXPECT_FALSE(Judge().has_value());
  }
}

TEST_F(StateChecksTest, TheOddOneOfThreeIsNamed) {
  Begin(3);
  Tell(0, 5);
  Tell(1, 6);
  EXPECT_FALSE(Judge().has_value()) << "the third one decides";
  Tell(2, 5);
  const auto verdict = Judge();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_THAT(verdict->out, ElementsAre(Pair(GroupParts::Named(1),
                                             "its state after step 1 is not that of most members "
                                             "(0000000000000006, not 0000000000000005)")));
}

TEST_F(StateChecksTest, TwoThatDifferAreBothNamed) {
  Begin(2);
  Tell(0, 5);
  EXPECT_FALSE(Judge().has_value());
  Tell(1, 6);
  const auto verdict = Judge();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_THAT(verdict->out, IsEmpty()) << "nobody knows which one is right";
  EXPECT_EQ(verdict->why,
            "the states after step 1 differ: worker-0 has 0000000000000005, worker-1 has "
            "0000000000000006");
}

TEST_F(StateChecksTest, HalfOfTheMembersAreNotMost) {
  Begin(4);
  Tell(0, 5);
  Tell(1, 5);
  Tell(2, 6);
  EXPECT_FALSE(Judge().has_value());
  Tell(3, 7);
  const auto verdict = Judge();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_THAT(verdict->out, IsEmpty());
}

TEST_F(StateChecksTest, MostMembersNeedNotWaitForTheRest) {
  Begin(4);
  for (uint64_t i = 0; i < 3; ++i) Tell(i, 5);
  EXPECT_FALSE(Judge().has_value());
  Tell(2, 6);
  Tell(3, 5);
  Tell(0, 5);
  ASSERT_TRUE(Judge().has_value());
  EXPECT_EQ(Judge()->out.front().first, GroupParts::Named(2));
}

TEST_F(StateChecksTest, DigestsOfDifferentStatesAreNotCompared) {
  Begin(2);
  Tell(0, 5);
  Tell(1, 6, 1);
  EXPECT_FALSE(Judge().has_value());
  GroupExchangeRequest call = parts.Holding();
  call.digest = StateDigest{{LineageNumber(9), StepNumber(1)}, 6};
  parts.Hear(1, call);
  EXPECT_FALSE(Judge().has_value()) << "of another lineage";
}

TEST_F(StateChecksTest, TheFirstStepsAreCheckedOftenAndLaterOnesRarely) {
  uint64_t checks = 0;
  for (uint64_t step = 0; step < StateChecks::kEvery; ++step) {
    checks += StateChecks::IsDue(StepNumber(step)) ? 1 : 0;
  }
  EXPECT_EQ(checks, 6u);
  EXPECT_FALSE(StateChecks::IsDue(StepNumber(0)));
  EXPECT_TRUE(StateChecks::IsDue(StepNumber(1)));
  EXPECT_TRUE(StateChecks::IsDue(StepNumber(StateChecks::kEvery)));
  EXPECT_FALSE(StateChecks::IsDue(StepNumber(2 * StateChecks::kEvery - 1)));
  EXPECT_TRUE(StateChecks::IsDue(StepNumber(3 * StateChecks::kEvery)));
}

}  // namespace
}  // namespace muster
