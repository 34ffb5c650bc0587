#include "master/core/nodes/write_trouble.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::seconds;
using WriteChange = WriteTrouble::Change;

TimePoint AtSecond(int s) {
  return TimePoint(seconds(s));
}

std::string SnapshotText(const WriteTrouble& trouble, TimePoint now) {
  return trouble.Text("ps-0", WriteTrouble::kSnapshots, now);
}

TEST(WriteTroubleTest, TellsForHowLongNothingWasCommitted) {
  WriteTrouble trouble;
  EXPECT_EQ(trouble.Take({"", DoneSeq(3)}, AtSecond(0), seconds(30)), WriteChange::kNone);
  EXPECT_EQ(SnapshotText(trouble, AtSecond(100)), "");
  EXPECT_EQ(trouble.Take({"x: the disk is full", DoneSeq(3)}, AtSecond(100), seconds(30)),
            WriteChange::kBegan);
  EXPECT_EQ(SnapshotText(trouble, AtSecond(109)), "") << "it may pass";
  EXPECT_EQ(trouble.Take({"y: the disk is full", DoneSeq(3)}, AtSecond(200), seconds(30)),
            WriteChange::kNone);
  EXPECT_EQ(SnapshotText(trouble, AtSecond(230)),
            "nothing was committed for 2:10, because ps-0 cannot write its snapshots: y: the disk "
            "is full");
  trouble.Take({"cannot write /p0: No space left on device", DoneSeq(3)}, AtSecond(231),
               seconds(30));
  EXPECT_EQ(SnapshotText(trouble, AtSecond(231)),
            "nothing was committed for 2:11: the disk of ps-0's snapshots is full: cannot write "
            "/p0: No space left on device");
}

TEST(WriteTroubleTest, ACommitBeginsTheTimeAnew) {
  WriteTrouble trouble;
  trouble.Take({"full", DoneSeq(3)}, AtSecond(0), seconds(30));
  trouble.Take({"full", DoneSeq(4)}, AtSecond(60), seconds(30));
  EXPECT_EQ(trouble.since(), AtSecond(60));
  EXPECT_EQ(SnapshotText(trouble, AtSecond(69)), "");
  EXPECT_NE(SnapshotText(trouble, AtSecond(70)), "");
}

TEST(WriteTroubleTest, IsOverAfterATurnWithoutAnError) {
  WriteTrouble trouble;
  trouble.Take({"full", DoneSeq(3)}, AtSecond(0), seconds(30));
  EXPECT_EQ(trouble.Take({"", DoneSeq(3)}, AtSecond(29), seconds(30)), WriteChange::kNone);
  EXPECT_TRUE(trouble.active());
  EXPECT_EQ(trouble.Take({"", DoneSeq(3)}, AtSecond(30), seconds(30)), WriteChange::kOver);
  EXPECT_EQ(SnapshotText(trouble, AtSecond(100)), "");
  EXPECT_EQ(trouble.Take({"full", DoneSeq(3)}, AtSecond(200), seconds(30)), WriteChange::kBegan);
  EXPECT_EQ(trouble.since(), AtSecond(200));
}

TEST(WriteTroubleTest, OutputsAreToldOfInWordsOfTheirOwn) {
  WriteTrouble trouble;
  trouble.Take({"no answer from s3://b", DoneSeq(3)}, AtSecond(0), seconds(0));
  const auto text = [&](int second) {
    return trouble.Text("worker-1", WriteTrouble::kOutputs, AtSecond(second));
  };
  EXPECT_EQ(text(4), "");
  EXPECT_EQ(text(5),
            "no outputs were written for 0:05, because worker-1 cannot write its outputs: no "
            "answer from s3://b");
  EXPECT_EQ(trouble.Take({"", DoneSeq(3)}, AtSecond(6), seconds(0)), WriteChange::kOver)
      << "without a turn, the first one that works is enough";
  EXPECT_EQ(text(100), "");
}

}  // namespace
}  // namespace muster
