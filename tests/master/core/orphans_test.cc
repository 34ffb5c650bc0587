#include "master/core/orphans.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr MasterIncarnation kOwn(7);

TEST(Orphans, NamesSayWhichMasterAskedForThem) {
  EXPECT_EQ(IncarnationIn("p00003/e12-s7.5-base-0f.sst"), MasterIncarnation(7));
  EXPECT_EQ(IncarnationIn("p00003/e12-s12.5.tmp"), MasterIncarnation(12));
  EXPECT_EQ(IncarnationIn("e1-s3.1-delta-aa.sst"), MasterIncarnation(3));
  for (const char* other :
       {"p00003/17.sst", "p00003/e12-s", "p00003/e12-sx.5-base.sst", "", "p/",
        "p00003/e12-s7-base.sst", "p00003/x-s7.1.sst", "p00003/e1-s99999999999999999999.1.sst"}) {
    EXPECT_EQ(IncarnationIn(other), std::nullopt) << other;
  }
}

TEST(Orphans, OnlyFilesOfOlderMastersAreSwept) {
  EXPECT_TRUE(MaySweep("p00001/e1-s6.9-base-0f.sst", {}, kOwn));
  EXPECT_FALSE(MaySweep("p00001/e1-s7.1-base-0f.sst", {}, kOwn));
  EXPECT_FALSE(MaySweep("p00001/e1-s8.1-base-0f.sst", {}, kOwn));
  EXPECT_TRUE(MaySweep("p00001/17.sst", {}, kOwn)) << "no version since 0.1 writes such names";
}

TEST(Orphans, WhatAManifestNamesStays) {
  EXPECT_FALSE(MaySweep("p00001/e1-s6.9-base-0f.sst", {"p00001/e1-s6.9-base-0f.sst"}, kOwn));
}

TEST(Orphans, NamesOfStripesSayInWhichAttemptTheyWereStored) {
  EXPECT_EQ(StripeAttemptIn("group/r1-s120-a3-c5-0"), AttemptNumber(3));
  EXPECT_EQ(StripeAttemptIn("group/r2-s7-a41-c0-12.tmp.77"), AttemptNumber(41));
  for (const char* other : {"", "group/", "group/notes.txt", "group/r1-s1-ax-c0-1", "p1/r1-a3-c0-0",
                            "group/r1-s1-a3", "group/r1-s1-a99999999999999999999-c0-0"}) {
    EXPECT_EQ(StripeAttemptIn(other), std::nullopt) << other;
  }
}

TEST(Orphans, StripesOfAttemptsThatTheJournalHasAreSwept) {
  constexpr AttemptNumber kNewest(5);
  EXPECT_TRUE(MaySweepStripe("group/r1-s120-a3-c5-0", {}, kNewest));
  EXPECT_TRUE(MaySweepStripe("group/r1-s120-a5-c5-0", {}, kNewest));
  EXPECT_FALSE(MaySweepStripe("group/r1-s120-a6-c5-0", {}, kNewest)) << "a newer master's";
  EXPECT_FALSE(MaySweepStripe("group/r1-s9-a3-c5-0", {"group/r1-s9-a3-c5-0"}, kNewest));
  EXPECT_FALSE(MaySweepStripe("group/notes.txt", {}, kNewest));
}

}  // namespace
}  // namespace muster
