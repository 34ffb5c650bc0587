#include "master/core/servers/snapshot_trouble.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::seconds;
using SnapshotChange = SnapshotTrouble::Change;

TimePoint AtSecond(int s) {
  return TimePoint(seconds(s));
}

TEST(SnapshotTroubleTest, TellsForHowLongNothingWasCommitted) {
  SnapshotTrouble trouble;
  EXPECT_EQ(trouble.Take({"", DoneSeq(3)}, AtSecond(0), seconds(30)), SnapshotChange::kNone);
  EXPECT_EQ(trouble.Text("ps-0", AtSecond(100)), "");
  EXPECT_EQ(trouble.Take({"x: the disk is full", DoneSeq(3)}, AtSecond(100), seconds(30)),
            SnapshotChange::kBegan);
  EXPECT_EQ(trouble.Text("ps-0", AtSecond(109)), "") << "it may pass";
  EXPECT_EQ(trouble.Take({"y: the disk is full", DoneSeq(3)}, AtSecond(200), seconds(30)),
            SnapshotChange::kNone);
  EXPECT_EQ(trouble.Text("ps-0", AtSecond(230)),
            "nothing was committed for 2:10, because ps-0 cannot write its snapshots: y: the disk "
            "is full");
  trouble.Take({"cannot write /p0: No space left on device", DoneSeq(3)}, AtSecond(231),
               seconds(30));
  EXPECT_EQ(trouble.Text("ps-0", AtSecond(231)),
            "nothing was committed for 2:11: the disk of ps-0's snapshots is full: cannot write "
            "/p0: No space left on device");
}

TEST(SnapshotTroubleTest, ACommitBeginsTheTimeAnew) {
  SnapshotTrouble trouble;
  trouble.Take({"full", DoneSeq(3)}, AtSecond(0), seconds(30));
  trouble.Take({"full", DoneSeq(4)}, AtSecond(60), seconds(30));
  EXPECT_EQ(trouble.since(), AtSecond(60));
  EXPECT_EQ(trouble.Text("ps-0", AtSecond(69)), "");
  EXPECT_NE(trouble.Text("ps-0", AtSecond(70)), "");
}

TEST(SnapshotTroubleTest, IsOverAfterATurnWithoutAnError) {
  SnapshotTrouble trouble;
  trouble.Take({"full", DoneSeq(3)}, AtSecond(0), seconds(30));
  EXPECT_EQ(trouble.Take({"", DoneSeq(3)}, AtSecond(29), seconds(30)), SnapshotChange::kNone);
  EXPECT_TRUE(trouble.active());
  EXPECT_EQ(trouble.Take({"", DoneSeq(3)}, AtSecond(30), seconds(30)), SnapshotChange::kOver);
  EXPECT_EQ(trouble.Text("ps-0", AtSecond(100)), "");
  EXPECT_EQ(trouble.Take({"full", DoneSeq(3)}, AtSecond(200), seconds(30)), SnapshotChange::kBegan);
  EXPECT_EQ(trouble.since(), AtSecond(200));
}

}  // namespace
}  // namespace muster
