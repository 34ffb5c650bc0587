#include "master/service/pending_deletions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TimePoint At(int ms) {
  return TimePoint(milliseconds(ms));
}

TEST(PendingDeletionsTest, FilesGoInOrderAndInBatches) {
  PendingDeletions pending({.batch = 2});
  EXPECT_FALSE(pending.NextAt().has_value());
  EXPECT_EQ(pending.Add({"a", "b"}, At(0)), 0u);
  EXPECT_EQ(pending.Add({"c"}, At(0)), 0u);
  EXPECT_LE(*pending.NextAt(), At(0));
  EXPECT_THAT(pending.Next(At(0)), ElementsAre("a", "b"));
  EXPECT_THAT(pending.Next(At(0)), ElementsAre("c"));
  EXPECT_THAT(pending.Next(At(0)), IsEmpty());
  EXPECT_EQ(pending.size(), 0u);
}

TEST(PendingDeletionsTest, TooManyAreForgotten) {
  PendingDeletions pending({.most = 3});
  EXPECT_EQ(pending.Add({"a", "b", "c", "d", "e"}, At(0)), 2u);
  EXPECT_EQ(pending.size(), 3u);
}

TEST(PendingDeletionsTest, WhatIsReadStays) {
  PendingDeletions pending;
  pending.Hold({"a", "b"}, At(1'000));
  pending.Hold({"b"}, At(500));
  EXPECT_EQ(pending.Add({"a", "b", "c"}, At(0)), 0u);
  EXPECT_THAT(pending.Next(At(0)), ElementsAre("c"));
  EXPECT_THAT(pending.Next(At(999)), IsEmpty());
  EXPECT_EQ(pending.NextAt(), At(1'000));
  EXPECT_THAT(pending.Next(At(1'000)), ElementsAre("a", "b"));
  pending.Add({"a"}, At(1'001));
  EXPECT_THAT(pending.Next(At(1'001)), ElementsAre("a")) << "the time is over";
}

TEST(PendingDeletionsTest, AnAbsentStoreIsAskedLessOften) {
  PendingDeletions pending({.pause_first = milliseconds(100), .pause_max = milliseconds(300)});
  pending.Add({"a", "b"}, At(0));
  EXPECT_THAT(pending.Next(At(0)), ElementsAre("a", "b"));
  pending.Away({"b"}, At(0));
  EXPECT_THAT(pending.Next(At(99)), IsEmpty());
  EXPECT_EQ(pending.NextAt(), At(100));
  EXPECT_THAT(pending.Next(At(100)), ElementsAre("b"));
  pending.Away({"b"}, At(100));
  EXPECT_EQ(pending.NextAt(), At(300));
  EXPECT_THAT(pending.Next(At(300)), ElementsAre("b"));
  pending.Away({"b"}, At(300));
  EXPECT_EQ(pending.NextAt(), At(600)) << "the longest pause";
  EXPECT_THAT(pending.Next(At(600)), ElementsAre("b"));
  pending.Answered();
  pending.Add({"c"}, At(600));
  EXPECT_THAT(pending.Next(At(600)), ElementsAre("c"));
  pending.Away({"c"}, At(600));
  EXPECT_EQ(pending.NextAt(), At(700)) << "a short pause again";
}

TEST(PendingDeletionsTest, AtTheEndNothingIsHeld) {
  PendingDeletions pending;
  pending.Hold({"a"}, At(1'000));
  pending.Add({"a", "b"}, At(0));
  EXPECT_THAT(pending.Next(At(0)), ElementsAre("b"));
  pending.Away({"b"}, At(0));
  pending.Hurry();
  EXPECT_THAT(pending.Next(At(1)), ElementsAre("b", "a"));
}

}  // namespace
}  // namespace muster
