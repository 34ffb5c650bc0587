#include "master/group_core/suspicions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/group_core/parts.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::GroupParts;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SuspicionsTest : public ::testing::Test {
 protected:
  SuspicionsTest() { parts.Begin(3); }
  void Accuse(uint64_t accuser, uint64_t accused) {
    GroupExchangeRequest call = parts.Holding();
    const GroupProcess other = GroupParts::Named(accused);
    call.suspected = {{other.worker, other.incarnation, "connection reset"}};
    parts.Hear(accuser, call);
    parts.suspicions.Take(parts.now);
  }
  void AllCall() {
    parts.Pass(milliseconds(10));
    for (uint64_t i = 0; i < 3; ++i) parts.Hear(i, parts.Holding());
  }
  GroupParts parts;
};

TEST_F(SuspicionsTest, TheStepIsTriedAgainWhenAllHaveCalled) {
  EXPECT_FALSE(parts.suspicions.Judge(parts.now).has_value());
  Accuse(0, 2);
  EXPECT_TRUE(parts.suspicions.inquires());
  EXPECT_FALSE(parts.suspicions.Judge(parts.now).has_value());
  AllCall();
  const auto verdict = parts.suspicions.Judge(parts.now);
  ASSERT_TRUE(verdict.has_value());
  EXPECT_THAT(verdict->out, IsEmpty());
  EXPECT_EQ(verdict->why, "worker-0 cannot reach worker-2: connection reset");
}

TEST_F(SuspicionsTest, WhoDoesNotCallIsOut) {
  Accuse(0, 2);
  parts.Pass(milliseconds(10));
  parts.Hear(0, parts.Holding());
  parts.Hear(1, parts.Holding());
  parts.Pass(parts.books.options.inquiry_wait - milliseconds(11));
  EXPECT_FALSE(parts.suspicions.Judge(parts.now).has_value());
  parts.Pass(milliseconds(1));
  const auto verdict = parts.suspicions.Judge(parts.now);
  ASSERT_TRUE(verdict.has_value());
  ASSERT_THAT(verdict->out, SizeIs(1));
  EXPECT_EQ(verdict->out[0].first, GroupParts::Named(2));
  EXPECT_FALSE(verdict->evicted.has_value());
}

TEST_F(SuspicionsTest, APairThatDisagreesAgainAndAgainLosesOne) {
  for (uint32_t i = 1; i < Suspicions::kStrikesMax; ++i) {
    Accuse(0, 1);
    AllCall();
    EXPECT_FALSE(parts.suspicions.Judge(parts.now)->evicted.has_value());
    parts.suspicions.OnAttempt();
  }
  Accuse(1, 0);
  AllCall();
  const auto verdict = parts.suspicions.Judge(parts.now);
  EXPECT_EQ(verdict->evicted, GroupParts::Named(0)) << "the one that is accused now";
  ASSERT_THAT(verdict->out, SizeIs(1));
  EXPECT_THAT(verdict->out[0].second, HasSubstr("3 times in a row"));
}

TEST_F(SuspicionsTest, TheOneWithMoreAccusersGoesOtherwiseTheHigherRank) {
  const auto evicted = [this](bool third_agrees) {
    for (uint32_t i = 0; i < Suspicions::kStrikesMax; ++i) {
      parts.suspicions.OnAttempt();
      Accuse(0, 1);
      Accuse(1, 0);
      if (third_agrees) Accuse(2, 0);
      AllCall();
      const auto verdict = parts.suspicions.Judge(parts.now);
      if (verdict->evicted.has_value()) return verdict->evicted;
    }
    return std::optional<GroupProcess>();
  };
  EXPECT_EQ(evicted(false), GroupParts::Named(1));
  parts.suspicions.OnStep();
  EXPECT_EQ(evicted(true), GroupParts::Named(0));
}

TEST_F(SuspicionsTest, AStepThatHappensEndsTheRow) {
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 1; i < Suspicions::kStrikesMax; ++i) {
      Accuse(0, 1);
      AllCall();
      EXPECT_FALSE(parts.suspicions.Judge(parts.now)->evicted.has_value());
      parts.suspicions.OnAttempt();
    }
    parts.suspicions.OnStep();
  }
}

TEST_F(SuspicionsTest, AWordOfAnotherAttemptIsVoid) {
  GroupExchangeRequest call = parts.Holding();
  call.suspected = {{"worker-2", 12, "late"}};
  parts.membership.Retry("test");
  parts.Hear(0, call);
  parts.suspicions.Take(parts.now);
  EXPECT_FALSE(parts.suspicions.inquires());
  Accuse(0, 9);
  EXPECT_FALSE(parts.suspicions.inquires()) << "no member";
}

TEST_F(SuspicionsTest, APairThatDoesNotGetOnLosesOneAtOnceAndForLonger) {
  const auto disagree = [&](uint64_t accuser, uint64_t accused) {
    parts.suspicions.OnAttempt();
    Accuse(accuser, accused);
    AllCall();
    return parts.suspicions.Judge(parts.now).value();
  };
  EXPECT_FALSE(disagree(0, 2).evicted.has_value());
  EXPECT_FALSE(disagree(0, 2).evicted.has_value());
  EXPECT_EQ(disagree(0, 2).away, parts.books.options.eviction);
  // The others have made a step without it, and it has come back.
  std::vector<GroupProcess> all = parts.books.members;
  parts.books.members.pop_back();
  parts.suspicions.OnStep();
  parts.books.members = all;
  const Suspicions::Verdict second = disagree(2, 0);
  EXPECT_EQ(second.evicted, GroupParts::Named(0));
  EXPECT_EQ(second.away, 2 * parts.books.options.eviction);
  EXPECT_THAT(second.out.back().second, HasSubstr("again worker-2 cannot reach worker-0"));
  EXPECT_EQ(disagree(0, 2).away, 4 * parts.books.options.eviction);
  for (int i = 0; i < 20; ++i) disagree(0, 2);
  EXPECT_EQ(disagree(0, 2).away, 64 * parts.books.options.eviction);
  EXPECT_FALSE(disagree(1, 2).evicted.has_value()) << "of another pair";
  parts.suspicions.OnStep();
  EXPECT_FALSE(disagree(0, 2).evicted.has_value()) << "they have made a step together";
}

}  // namespace
}  // namespace muster
