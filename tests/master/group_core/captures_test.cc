#include "master/group_core/captures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/group_core/parts.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::GroupParts;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CapturesTest : public ::testing::Test {
 protected:
  CapturesTest() : parts({.checkpoint_interval = milliseconds(60'000)}) { parts.Begin(2); }
  /// Worker i has its stripe of the capture; `object`: where it is stored.
  void Hold(uint64_t i, const std::string& object = "", uint64_t digest = 0) {
    GroupExchangeRequest call = parts.Holding();
    const StateCapture& asked = *parts.captures.asked();
    call.capture = HeldCapture{{parts.books.lineage.number(), asked.step},
                               asked.stripes,
                               {static_cast<uint32_t>(i), 8, 5, object},
                               digest};
    parts.Hear(i, call);
    parts.captures.Take(parts.now);
  }
  /// Worker 2 learns the state after step 0.
  void Learn() {
    parts.Hear(2);
    parts.membership.Place("");
    parts.captures.Ask(parts.now);
    Hold(0);
    Hold(1);
    ASSERT_TRUE(parts.captures.Source().has_value());
  }
  std::string Object(uint64_t i) {
    return parts.captures.asked()->object_prefix + std::to_string(i);
  }
  void AskForCheckpoint() {
    parts.Pass(parts.books.options.checkpoint_interval);
    parts.captures.Ask(parts.now);
    ASSERT_TRUE(parts.captures.asked().has_value());
  }
  GroupParts parts;
};

TEST_F(CapturesTest, ACheckpointCountsWhenAllStripesAreStored) {
  parts.DoStep();
  parts.captures.Ask(parts.now);
  EXPECT_FALSE(parts.captures.asked().has_value()) << "not yet";
  AskForCheckpoint();
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(1));
  EXPECT_EQ(parts.captures.asked()->stripes, 2u);
  EXPECT_EQ(parts.captures.asked()->object_prefix, "group/r1-s1-a1-c1-");
  Hold(0, Object(0));
  Hold(1);
  EXPECT_FALSE(parts.captures.pending());
  EXPECT_FALSE(parts.books.lineage.checkpoint().has_value());
  Hold(1, Object(1));
  ASSERT_TRUE(parts.books.lineage.checkpoint().has_value());
  EXPECT_EQ(parts.books.lineage.checkpoint()->label, (StateLabel{LineageNumber(1), StepNumber(1)}));
  EXPECT_EQ(parts.books.lineage.checkpoint()->stripes[1].object, "group/r1-s1-a1-c1-1");
  EXPECT_THAT(parts.data.done, IsEmpty()) << "COMMITTED";
  EXPECT_FALSE(parts.captures.asked().has_value()) << "nobody needs the copy";
}

TEST_F(CapturesTest, ACheckpointOfDifferentStatesDoesNotCount) {
  parts.DoStep();
  AskForCheckpoint();
  const std::string first = Object(0), second = Object(1);
  Hold(0, first, 9);
  Hold(1, second, 8);
  EXPECT_FALSE(parts.books.lineage.checkpoint().has_value());
  EXPECT_FALSE(parts.captures.asked().has_value()) << "and is not waited for";
  EXPECT_THAT(parts.captures.TakeUnusedObjects(), ElementsAre(first, second));
  parts.captures.Ask(parts.now);
  ASSERT_TRUE(parts.captures.asked().has_value()) << "the next one is due at once";
  Hold(1, Object(1), 9);
  Hold(0, Object(0), 9);
  EXPECT_TRUE(parts.books.lineage.checkpoint().has_value());
}

TEST_F(CapturesTest, NobodyLearnsFromDifferentStates) {
  parts.Hear(2);
  parts.membership.Place("");
  parts.captures.Ask(parts.now);
  Hold(0, "", 9);
  Hold(1, "", 8);
  EXPECT_FALSE(parts.captures.Source().has_value());
}

TEST_F(CapturesTest, ACheckpointReplacesTheFormerOne) {
  for (int i = 0; i < 2; ++i) {
    parts.DoStep();
    AskForCheckpoint();
    const std::string first = Object(0), second = Object(1);
    Hold(0, first);
    Hold(1, second);
  }
  EXPECT_EQ(parts.books.lineage.checkpoint_step(), StepNumber(2));
  EXPECT_THAT(parts.captures.TakeUnusedObjects(),
              ElementsAre("group/r1-s1-a1-c1-0", "group/r1-s1-a1-c1-1"));
}

TEST_F(CapturesTest, AStripeOfAnotherStateCountsForNothing) {
  parts.DoStep();
  AskForCheckpoint();
  GroupExchangeRequest call = parts.Holding();
  const HeldCapture right{{LineageNumber(1), StepNumber(1)}, 2, {0, 8, 5, Object(0)}};
  std::vector<HeldCapture> wrong(4, right);
  wrong[0].label.step = StepNumber(0);
  wrong[1].label.lineage = LineageNumber(2);
  wrong[2].stripes = 3;
  wrong[3].stripe.stripe = 1;
  Hold(1, Object(1));
  for (const HeldCapture& held : wrong) {
    call.capture = held;
    parts.Hear(0, call);
    parts.captures.Take(parts.now);
    EXPECT_TRUE(parts.captures.pending());
  }
  // The right stripe, but stored for another capture.
  Hold(0, "group/r1-s1-a9-c1-0");
  EXPECT_FALSE(parts.captures.pending());
  EXPECT_FALSE(parts.books.lineage.checkpoint().has_value());
  Hold(0, Object(0));
  EXPECT_TRUE(parts.books.lineage.checkpoint().has_value());
}

TEST_F(CapturesTest, StripesThatAreNotStoredAreCopiedAnew) {
  parts.DoStep();
  AskForCheckpoint();
  const std::string prefix = parts.captures.asked()->object_prefix;
  Hold(0, Object(0));
  Hold(1);
  parts.Pass(std::chrono::minutes(10));
  parts.captures.Take(parts.now);
  EXPECT_THAT(parts.captures.TakeUnusedObjects(), ElementsAre(prefix + "0"));
  parts.captures.Ask(parts.now);
  ASSERT_TRUE(parts.captures.asked().has_value());
  EXPECT_NE(parts.captures.asked()->object_prefix, prefix) << "the objects are being deleted";
  // What was stored for the former one does not count.
  GroupExchangeRequest call = parts.Holding();
  call.capture = HeldCapture{{LineageNumber(1), StepNumber(1)}, 2, {0, 8, 5, prefix + "0"}};
  parts.Hear(0, call);
  Hold(1, Object(1));
  EXPECT_FALSE(parts.books.lineage.checkpoint().has_value());
}

TEST_F(CapturesTest, ASlowStoreHasAsMuchTimeAsItNeeds) {
  parts.DoStep();
  AskForCheckpoint();
  const std::string prefix = parts.captures.asked()->object_prefix;
  Hold(0, Object(0));
  Hold(1);
  GroupExchangeRequest call = parts.Holding();
  call.capture = HeldCapture{{LineageNumber(1), StepNumber(1)}, 2, {1, 8, 5, ""}};
  for (int i = 0; i < 10; ++i) {
    parts.Pass(std::chrono::minutes(9));
    ++call.written;
    parts.Hear(1, call);
    parts.captures.Take(parts.now);
  }
  ASSERT_TRUE(parts.captures.asked().has_value());
  EXPECT_EQ(parts.captures.asked()->object_prefix, prefix);
  Hold(1, Object(1));
  EXPECT_TRUE(parts.books.lineage.checkpoint().has_value());
}

TEST_F(CapturesTest, AMemberCopiesWhenItHasApplied) {
  parts.DoStep();
  AskForCheckpoint();
  Hold(0);
  GroupExchangeRequest call = parts.Holding();
  call.phase = MemberPhase::kApplying;
  parts.Hear(1, call);
  for (int i = 0; i < 10; ++i) {
    parts.Pass(std::chrono::seconds(59));
    parts.captures.Take(parts.now);
  }
  EXPECT_TRUE(parts.captures.pending());
  call.phase = MemberPhase::kIdle;
  parts.Hear(1, call);
  parts.Pass(std::chrono::seconds(60));
  parts.captures.Take(parts.now);
  EXPECT_FALSE(parts.captures.asked().has_value()) << "it does not get on";
}

TEST_F(CapturesTest, ACaptureThatBeginsEndsWithItsAttempt) {
  parts.DoStep();
  AskForCheckpoint();
  Hold(0, Object(0));
  const std::string stored = Object(0);
  parts.membership.Retry("test");
  EXPECT_FALSE(parts.captures.asked().has_value());
  EXPECT_THAT(parts.captures.TakeUnusedObjects(), ElementsAre(stored));
}

TEST_F(CapturesTest, ACheckpointOutlivesAMemberWhoseStripeIsStored) {
  parts.DoStep();
  AskForCheckpoint();
  Hold(0, Object(0));
  Hold(1);
  parts.membership.Without({{GroupParts::Named(0), "test"}}, "");
  ASSERT_TRUE(parts.captures.asked().has_value());
  Hold(1, Object(1));
  EXPECT_TRUE(parts.books.lineage.checkpoint().has_value());
}

TEST_F(CapturesTest, ACheckpointDiesWithAMemberWhoseStripeIsNot) {
  parts.DoStep();
  AskForCheckpoint();
  Hold(0, Object(0));
  Hold(1);
  parts.membership.Without({{GroupParts::Named(1), "test"}}, "");
  EXPECT_FALSE(parts.captures.asked().has_value());
}

TEST_F(CapturesTest, WithoutANewStepThereIsNothingToStore) {
  parts.Pass(2 * parts.books.options.checkpoint_interval);
  parts.captures.Ask(parts.now);
  EXPECT_FALSE(parts.captures.asked().has_value());
}

TEST_F(CapturesTest, TheEndOfTheDataAsksAtOnce) {
  for (int i = 0; i < 4; ++i) parts.DoStep();
  parts.captures.Ask(parts.now);
  ASSERT_TRUE(parts.captures.asked().has_value());
  Hold(0, Object(0));
  Hold(1, Object(1));
  EXPECT_TRUE(parts.data.over);
}

TEST_F(CapturesTest, ALearnerGetsTheStateFromTheMembers) {
  parts.Hear(2);
  parts.membership.Place("");
  EXPECT_FALSE(parts.captures.KeepsSums()) << "nothing is captured";
  parts.captures.Ask(parts.now);
  ASSERT_TRUE(parts.captures.asked().has_value());
  EXPECT_EQ(parts.captures.asked()->object_prefix, "") << "it is not stored";
  EXPECT_TRUE(parts.captures.KeepsSums());
  EXPECT_FALSE(parts.captures.Source().has_value());
  const uint64_t number = parts.captures.source_number();
  Hold(0);
  Hold(1);
  EXPECT_NE(parts.captures.source_number(), number);
  const std::optional<StateSource> source = parts.captures.Source();
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->label, (StateLabel{LineageNumber(1), StepNumber(0)}));
  ASSERT_THAT(source->holders, SizeIs(2));
  EXPECT_EQ(source->holders[1].addresses, std::vector<std::string>{"unix:/worker-1"});
  EXPECT_EQ(parts.captures.KeptSince(), StepNumber(0));
  // A holder is lost.
  parts.membership.Without({{GroupParts::Named(1), "test"}}, "");
  EXPECT_FALSE(parts.captures.Source().has_value());
}

TEST_F(CapturesTest, ACheckpointWaitsForALearnerThatGetsOn) {
  Learn();
  const auto half = parts.books.options.checkpoint_interval / 2;
  GroupExchangeRequest learner;
  for (int i = 0; i < 4; ++i) {
    if (i % 2 == 0) parts.DoStep();
    parts.Pass(half);
    ++learner.moved;
    parts.Hear(2, learner);
    parts.captures.Take(parts.now);
    parts.captures.Ask(parts.now);
    ASSERT_EQ(parts.captures.asked()->step, StepNumber(0)) << "it copies that state";
  }
  parts.Pass(2 * parts.books.options.silence_limit);
  parts.captures.Take(parts.now);
  parts.captures.Ask(parts.now);
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(2)) << "it does not get on";
  EXPECT_NE(parts.captures.asked()->object_prefix, "");
}

TEST_F(CapturesTest, ACheckpointDoesNotWaitForEver) {
  Learn();
  GroupExchangeRequest learner;
  parts.DoStep();
  int halves = 0;
  while (parts.captures.asked()->step == StepNumber(0) && halves < 100) {
    parts.Pass(parts.books.options.checkpoint_interval / 2);
    ++halves, ++learner.moved;
    parts.Hear(2, learner);
    parts.captures.Take(parts.now);
    parts.captures.Ask(parts.now);
  }
  EXPECT_EQ(halves, 2 * 4) << "4 intervals for the first capture";
}

TEST_F(CapturesTest, WhatTheJobWaitsForIsStoredAtOnce) {
  Learn();
  parts.DoStep();
  for (const uint64_t i : {0, 1}) {
    GroupExchangeRequest leaves = parts.Holding();
    leaves.leaving = true;
    parts.Hear(i, leaves);
  }
  parts.captures.Ask(parts.now);
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(1));
}

TEST_F(CapturesTest, TooManyKeptSumsAskForANewCapture) {
  parts.data = testing::FakeData(std::vector<uint32_t>(80, 2));
  parts.Hear(2);
  parts.membership.Place("");
  parts.captures.Ask(parts.now);
  Hold(0);
  Hold(1);
  // The first learner's capture allows twice the number.
  for (uint32_t i = 0; i < 2 * parts.books.options.kept_sums_max; ++i) parts.DoStep();
  parts.captures.Ask(parts.now);
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(0));
  parts.DoStep();
  parts.captures.Ask(parts.now);
  EXPECT_EQ(parts.captures.asked()->step, parts.books.lineage.step());
}

class LargeSumsTest : public ::testing::Test {
 protected:
  LargeSumsTest() {
    parts.data = testing::FakeData(std::vector<uint32_t>(80, 2));
    parts.books.lineage.Begin({{{"g", GroupDtype::kFixedPoint, 1'000, true, 24}}, 7});
    parts.Hear(0, parts.Holding());
    parts.membership.NewAttempt({GroupParts::Named(0)}, "test");
  }
  void Hold() {
    GroupExchangeRequest call = parts.Holding();
    call.capture = HeldCapture{*call.state, 1, {0, 8, 5, ""}};
    parts.Hear(0, call);
    parts.captures.Take(parts.now);
  }
  GroupParts parts{{.kept_bytes_max = 6 * 8'000 + 1}};
};

TEST_F(LargeSumsTest, MembersKeepBytesAndNotSteps) {
  parts.Hear(2);
  parts.membership.Place("");
  parts.captures.Ask(parts.now);
  Hold();
  for (int i = 0; i < 6; ++i) parts.DoStep();
  parts.captures.Ask(parts.now);
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(0));
  parts.DoStep();
  parts.captures.Ask(parts.now);
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(7)) << "the room is full";
}

TEST_F(LargeSumsTest, MembersKeepNoMoreWhileACheckpointIsStored) {
  parts.DoStep();
  parts.Pass(parts.books.options.checkpoint_interval);
  parts.captures.Ask(parts.now);
  ASSERT_NE(parts.captures.asked()->object_prefix, "");
  Hold();
  parts.Hear(2);
  parts.membership.Place("");
  EXPECT_FALSE(parts.captures.KeepsSums()) << "the capture is not for the learner";
  // One that is for the learner, too.
  parts.captures.Drop();
  parts.Pass(parts.books.options.checkpoint_interval);
  parts.captures.Ask(parts.now);
  ASSERT_NE(parts.captures.asked()->object_prefix, "");
  Hold();
  const uint64_t number = parts.captures.source_number();
  for (int i = 0; i < 6; ++i) parts.DoStep();
  parts.captures.Ask(parts.now);
  EXPECT_TRUE(parts.captures.KeepsSums());
  parts.DoStep();
  parts.captures.Ask(parts.now);
  EXPECT_FALSE(parts.captures.KeepsSums()) << "the room is full";
  EXPECT_FALSE(parts.captures.Source().has_value());
  EXPECT_FALSE(parts.captures.KeptSince().has_value());
  EXPECT_GT(parts.captures.source_number(), number);
  EXPECT_EQ(parts.captures.asked()->step, StepNumber(1)) << "it is still stored";
}

TEST_F(CapturesTest, AStripeThatALearnerCannotReadIsCapturedAnew) {
  parts.DoStep();
  parts.Hear(2);
  parts.membership.Place("");
  AskForCheckpoint();
  Hold(0, Object(0));
  Hold(1, Object(1));
  GroupExchangeRequest learner;
  learner.unreadable = UnreadableState{1, "cannot open /x"};
  parts.Hear(2, learner);
  parts.captures.Ask(parts.now);
  EXPECT_FALSE(parts.captures.pending()) << "the members have all stripes";
  parts.membership.Without({{GroupParts::Named(0), "test"}}, "");
  ASSERT_TRUE(parts.captures.Source().has_value());
  EXPECT_EQ(parts.captures.Source()->holders[0], GroupMember()) << "it is only stored";
  parts.captures.Ask(parts.now);
  ASSERT_TRUE(parts.captures.pending());
  EXPECT_EQ(parts.captures.asked()->stripes, 1u);
}

TEST_F(CapturesTest, ACheckpointOfTheNewestStepIsASource) {
  parts.DoStep();
  parts.books.lineage.Accept({{LineageNumber(1), StepNumber(1)}, {{0, 8, 5, "group/x"}}});
  std::optional<StateSource> source = parts.captures.Source();
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->stripes[0].object, "group/x");
  EXPECT_EQ(source->holders, std::vector<GroupMember>(1));
  parts.DoStep();
  EXPECT_FALSE(parts.captures.Source().has_value());
  parts.books.lineage.RollBack(StepNumber(1));
  source = parts.captures.Source();
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->label, (StateLabel{LineageNumber(2), StepNumber(1)})) << "of this lineage";
}

}  // namespace
}  // namespace muster
