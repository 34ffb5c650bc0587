#include "master/group_core/step_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/group_core/parts.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using testing::GroupParts;
using testing::GroupShard;
using ::testing::SizeIs;
using Shares = std::vector<ShareRanges>;

TEST(StepInWorkTest, TheNextShardIsDividedAmongTheMembers) {
  GroupParts parts;
  parts.Begin(2);
  parts.work.Begin();
  ASSERT_TRUE(parts.work.any());
  EXPECT_EQ(parts.work.data().shard, GroupShard(0));
  EXPECT_EQ(parts.work.data().ahead, GroupShard(1));
  EXPECT_EQ(parts.work.shares(), (Shares{{{0, 3}}, {{3, 3}}}));
}

TEST(StepInWorkTest, SlowMembersGetFewerMinibatches) {
  GroupParts parts;
  parts.Begin(2);
  GroupExchangeRequest fast = parts.Holding(), slow = parts.Holding();
  fast.minibatch_us = 1'000;
  slow.minibatch_us = 2'000;
  parts.Hear(0, fast);
  parts.Hear(1, slow);
  parts.work.Begin();
  EXPECT_EQ(parts.work.shares(), (Shares{{{0, 4}}, {{4, 2}}}));
}

TEST(StepInWorkTest, SurvivorsKeepTheirMinibatches) {
  GroupParts parts;
  parts.Begin(3);
  parts.work.Begin();
  const LeaseToken first = parts.work.token();
  parts.membership.Without({{GroupParts::Named(0), "test"}}, "");
  EXPECT_EQ(parts.work.data().shard, GroupShard(0));
  EXPECT_GT(parts.work.token(), first);
  EXPECT_EQ(parts.work.shares(), (Shares{{{0, 1}, {2, 2}}, {{1, 1}, {4, 2}}}));
}

TEST(StepInWorkTest, MinibatchesOfThoseWhoAreGoneAreDeliveredAgain) {
  GroupParts parts({.members_min = 2});
  parts.Begin(3);
  parts.work.Begin();
  parts.membership.Retry("test");
  EXPECT_EQ(parts.data.redelivered, 0u) << "all keep theirs";
  parts.membership.Without({{GroupParts::Named(0), "test"}}, "");
  EXPECT_EQ(parts.data.redelivered, 2u);
  parts.membership.Without({{GroupParts::Named(1), "test"}}, "");
  EXPECT_EQ(parts.data.redelivered, 8u) << "the one that is left waits, and computes all anew";
}

TEST(StepInWorkTest, WhatHasHappenedOrNeverWillIsNotDeliveredAgain) {
  GroupParts parts;
  parts.data.failures_max = 1;
  parts.Begin(2);
  parts.DoStep();
  parts.work.Begin();
  parts.work.Charge(parts.work.token(), GroupParts::Named(0), "NaN");
  parts.membership.Without({{GroupParts::Named(0), "test"}}, "");
  parts.work.End();
  EXPECT_EQ(parts.data.redelivered, 0u);
}

TEST(StepInWorkTest, TooFewMembersBeginNothing) {
  GroupParts parts({.members_min = 2});
  parts.Begin(1);
  parts.work.Begin();
  EXPECT_FALSE(parts.work.any());
  parts.Hear(1, parts.Holding());
  parts.membership.NewAttempt({GroupParts::Named(0), GroupParts::Named(1)}, "test");
  parts.work.Begin();
  EXPECT_TRUE(parts.work.any());
  parts.membership.Without({{GroupParts::Named(0), "test"}}, "");
  EXPECT_FALSE(parts.work.any()) << "the one that is left waits";
}

TEST(StepInWorkTest, WhoLeavesBeginsNothing) {
  GroupParts parts;
  parts.Begin(1);
  GroupExchangeRequest leaving = parts.Holding();
  leaving.leaving = true;
  parts.Hear(0, leaving);
  parts.work.Begin();
  EXPECT_FALSE(parts.work.any());
}

TEST(StepInWorkTest, ACrashCountsForTheShardOfItsToken) {
  GroupParts parts;
  parts.Begin(2);
  parts.work.Begin();
  const LeaseToken first = parts.work.token();
  parts.membership.Without({{GroupParts::Named(0), "test"}}, "");
  parts.work.Charge(first, GroupParts::Named(0), "crashed");
  EXPECT_THAT(parts.data.charges, ElementsAre("worker-0: crashed")) << "told after the new attempt";
  parts.work.Charge(first, GroupParts::Named(0), "crashed");
  EXPECT_THAT(parts.data.charges, SizeIs(1));
  const LeaseToken second = parts.work.token();
  parts.DoStep();
  parts.work.Charge(second, GroupParts::Named(1), "crashed");
  EXPECT_THAT(parts.data.charges, SizeIs(1)) << "its step has happened";
}

TEST(StepInWorkTest, AFailedShardIsReplaced) {
  GroupParts parts;
  parts.data.failures_max = 1;
  parts.Begin(1);
  parts.work.Begin();
  EXPECT_FALSE(parts.work.HasLostData());
  parts.work.Charge(parts.work.token(), GroupParts::Named(0), "NaN");
  EXPECT_TRUE(parts.work.HasLostData());
  parts.membership.Retry("test");
  EXPECT_EQ(parts.work.data().shard, GroupShard(1));
}

TEST(StepInWorkTest, TokensOfAStepAreInUseUntilItHasEnded) {
  GroupParts parts;
  parts.Begin(2);
  parts.work.Begin();
  const LeaseToken first = parts.work.token();
  parts.membership.Without({{GroupParts::Named(0), "test"}}, "");
  EXPECT_EQ(parts.data.floor, LeaseToken()) << "an earlier master's may be, too";
  parts.DoStep();
  EXPECT_EQ(parts.data.floor, first);
}

}  // namespace
}  // namespace muster
