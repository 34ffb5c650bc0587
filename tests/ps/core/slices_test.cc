// Requests and images in slices: what may come between two of them, and what must not.
#include <deque>

#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps {
namespace owned_partitions_test {

class SlicesTest : public OwnedPartitionsTest {
 protected:
  static constexpr uint64_t kRows = 5;  // of a part

  SlicesTest() {
    for (const uint32_t partition : {0u, 2u, 4u}) {
      Own({PartitionId(partition), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
    }
  }

  /// A push of one minibatch to some partitions: 1 to every column of rows 0 to 4.
  struct Pushing {
    wire::PushIdentity push;
    wire::Parts parts;
    std::vector<uint64_t> keys;
    std::vector<float> values;
    RequestProgress progress;
    PushReply reply;
    bool first = true;
  };
  /// `value` names the minibatch, too: repeats are made with the same one.
  Pushing& Begin(const std::vector<uint32_t>& partitions, uint32_t minibatch) {
    Pushing& push = pushes_.emplace_back();
    push.push = {.minibatch = minibatch, .token = Token(9).value()};
    for (const uint32_t partition : partitions) {
      push.parts.Add(partition, 1, {{.table = kTable, .keys = kRows}});
      for (uint64_t key = 0; key < kRows; ++key) {
        push.keys.push_back(key);
        push.values.insert(push.values.end(), 2, 1.0f);
      }
    }
    return push;
  }
  /// One slice, of no more than a row.
  Progress Go(Pushing* push, bool abandoned = false, uint64_t bytes = 1) {
    WorkLimit work(bytes);
    const Slice slice{std::exchange(push->first, false), abandoned, &work, nullptr};
    return owned_.Push({push->push, push->parts, push->keys, push->values}, slice, &push->reply,
                       &push->progress);
  }
  void GoToItsEnd(Pushing* push) {
    for (int slices = 0; Go(push) == Progress::kMore; ++slices) ASSERT_LT(slices, 1000);
  }
  bool HoldsHalf(uint32_t partition) { return Served(PartitionId(partition))->holds_half(); }
  void GoToHalf(Pushing* push, uint32_t partition) {
    for (int slices = 0; !HoldsHalf(partition); ++slices) {
      ASSERT_EQ(Go(push), Progress::kMore);
      ASSERT_LT(slices, 1000);
    }
    ASSERT_EQ(Go(push), Progress::kMore);  // and some rows
    ASSERT_TRUE(HoldsHalf(partition));
  }
  /// The first column of the rows of a partition.
  std::vector<float> Rows(uint32_t partition) {
    std::vector<uint64_t> keys(kRows);
    for (uint64_t key = 0; key < kRows; ++key) keys[key] = key;
    std::vector<float> values(2 * kRows), first;
    EXPECT_TRUE(Served(PartitionId(partition))->Pull(TableId(kTable), keys, values).ok());
    for (size_t i = 0; i < kRows; ++i) first.push_back(values[2 * i]);
    return first;
  }
  bool InWindow(uint32_t partition, uint32_t minibatch) {
    return Served(PartitionId(partition))->InWindow({}, MinibatchIndex(minibatch));
  }

  std::deque<Pushing> pushes_;
};

using ::testing::Each;

TEST_F(SlicesTest, PartsAreAppliedInTheirOrderAndAllOfThem) {
  Pushing& push = Begin({4, 0, 2}, 1);
  int slices = 0;
  while (Go(&push) == Progress::kMore) {
    ++slices;
    EXPECT_TRUE(InWindow(4, 1) || !InWindow(0, 1));
    EXPECT_TRUE(InWindow(0, 1) || !InWindow(2, 1));
    EXPECT_LE(HoldsHalf(0) + HoldsHalf(2) + HoldsHalf(4), 1) << "one at a time";
  }
  EXPECT_GT(slices, 3 * static_cast<int>(kRows));
  ASSERT_THAT(push.reply.parts, SizeIs(3));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(push.reply.parts[i].partition, push.parts[i].partition);
    EXPECT_EQ(push.reply.parts[i].code, PartCode::kOk);
    EXPECT_THAT(Rows(push.parts[i].partition), Each(1));
  }
}

TEST_F(SlicesTest, AnotherPushWaitsForAPartThatIsHalfAppliedAndOthersDoNot) {
  Pushing& first = Begin({2}, 1);
  GoToHalf(&first, 2);
  Pushing& second = Begin({0, 2}, 2);
  Pushing& repeat = Begin({2}, 1);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Go(&second), Progress::kMore);
    EXPECT_EQ(Go(&repeat), Progress::kMore);
  }
  EXPECT_THAT(second.reply.parts, SizeIs(1)) << "no other request uses partition 0";
  EXPECT_THAT(Rows(0), Each(1));
  EXPECT_THAT(repeat.reply.parts, IsEmpty());
  EXPECT_FALSE(InWindow(2, 2));
  GoToItsEnd(&first);
  GoToItsEnd(&second);
  GoToItsEnd(&repeat);
  EXPECT_TRUE(repeat.reply.parts.at(0).skipped);
  EXPECT_THAT(Rows(2), Each(2)) << "each minibatch once";
}

TEST_F(SlicesTest, APartOfAConnectionThatDiesIsBroughtToItsEndAndTheNextIsNotBegun) {
  Pushing& push = Begin({0, 2, 4}, 1);
  GoToHalf(&push, 2);
  for (int slices = 0; Go(&push, /*abandoned=*/true) == Progress::kMore; ++slices) {
    ASSERT_LT(slices, 1000);
  }
  EXPECT_THAT(Rows(0), Each(1));
  EXPECT_THAT(Rows(2), Each(1));
  EXPECT_FALSE(HoldsHalf(2));
  EXPECT_TRUE(InWindow(2, 1));
  EXPECT_THAT(Rows(4), Each(0));
  EXPECT_FALSE(InWindow(4, 1));
}

TEST_F(SlicesTest, WhatIsNotBegunIsNotBegunForAConnectionThatIsGone) {
  Pushing& push = Begin({0, 2}, 1);
  while (push.reply.parts.empty()) ASSERT_EQ(Go(&push), Progress::kMore);
  EXPECT_EQ(Go(&push, /*abandoned=*/true), Progress::kDone);
  EXPECT_FALSE(InWindow(2, 1));
  Pushing& waits = Begin({4}, 2);
  Pushing& holds = Begin({4}, 3);
  GoToHalf(&holds, 4);
  EXPECT_EQ(Go(&waits), Progress::kMore);
  EXPECT_EQ(Go(&waits, /*abandoned=*/true), Progress::kDone);
  GoToItsEnd(&holds);
  EXPECT_FALSE(InWindow(4, 2));
}

TEST_F(SlicesTest, AnImageWaitsForAPartThatIsHalfApplied) {
  Pushing& push = Begin({2, 4}, 1);
  GoToHalf(&push, 2);
  Ask(5, 1, 1);
  EXPECT_FALSE(owned_.BeginImage(now_));
  EXPECT_FALSE(owned_.TakeImageReady());
  while (push.reply.parts.empty()) {
    EXPECT_FALSE(owned_.TakeImageReady());
    ASSERT_EQ(Go(&push), Progress::kMore);
  }
  EXPECT_TRUE(owned_.TakeImageReady()) << "as soon as the part is whole";
  EXPECT_FALSE(owned_.TakeImageReady()) << "said once";
  const auto job = NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  ASSERT_THAT(job->image.window, SizeIs(1));
  ASSERT_THAT(job->image.rows, SizeIs(1));
  EXPECT_THAT(job->image.rows[0].rows, Each(1));
  EXPECT_THAT(job->image.rows[0].keys, SizeIs(kRows));
}

TEST_F(SlicesTest, AnImageIsOfOneInstantWhateverIsPushedWhileItIsCopied) {
  GoToItsEnd(&Begin({2}, 1));
  Ask(5, 1, 1);
  ASSERT_TRUE(owned_.BeginImage(now_));
  Pushing& push = Begin({2}, 2);
  SnapshotJob job;
  int slices = 0;
  for (;; ++slices) {
    Go(&push);
    if (slices == 3) owned_.AddTable(SumTable(2));
    WorkLimit work(1);
    const auto copied = owned_.CopyImage(&work, &job);
    if (copied == OwnedPartitions::Copy::kDone) break;
    ASSERT_EQ(copied, OwnedPartitions::Copy::kMore);
    EXPECT_FALSE(owned_.BeginImage(now_)) << "one at a time";
  }
  EXPECT_GE(slices, 3);
  GoToItsEnd(&push);
  EXPECT_THAT(Rows(2), Each(2));
  ASSERT_THAT(job.image.window, SizeIs(1));
  EXPECT_THAT(job.image.window[0].minibatches, ElementsAre(0b10u));
  EXPECT_THAT(job.image.tables, SizeIs(1));
  ASSERT_THAT(job.image.rows, SizeIs(1));
  EXPECT_THAT(job.image.rows[0].rows, Each(1));
  EXPECT_THAT(job.image.rows[0].keys, SizeIs(kRows));
}

TEST_F(SlicesTest, AnImageOfAnEpochThatIsOverIsGone) {
  GoToItsEnd(&Begin({2}, 1));
  Ask(5, 1, 1);
  ASSERT_TRUE(owned_.BeginImage(now_));
  Own({kP, OwnerEpoch(2), OwnerEpoch(1), {}, true, {}});  // keeps the state
  WorkLimit work = WorkLimit::None();
  SnapshotJob job;
  EXPECT_EQ(owned_.CopyImage(&work, &job), OwnedPartitions::Copy::kGone);
  Ask(6, 2, 2);
  ASSERT_TRUE(owned_.BeginImage(now_));
  Own({kP, OwnerEpoch(3), OwnerEpoch(3), {}, true, {}});  // and takes it away
  EXPECT_EQ(owned_.CopyImage(&work, &job), OwnedPartitions::Copy::kGone);
  EXPECT_FALSE(owned_.TakeGarbage().empty()) << "the state that was taken away";
}

TEST_F(SlicesTest, AnOwnThatKeepsTheStateAndAForgettingLeaveAHalfPartToBeWhole) {
  Pushing& push = Begin({2}, 1);
  GoToHalf(&push, 2);
  Own({kP, OwnerEpoch(2), OwnerEpoch(1), {}, true, {}});
  Forget(50);
  Pushing& late = Begin({2}, 2);
  EXPECT_EQ(Go(&late), Progress::kDone);
  EXPECT_EQ(late.reply.parts.at(0).code, PartCode::kWrongOwner) << "its epoch is over";
  GoToItsEnd(&push);
  EXPECT_EQ(push.reply.parts.at(0).code, PartCode::kOk);
  EXPECT_THAT(Rows(2), Each(1));
  EXPECT_TRUE(InWindow(2, 1));
}

TEST_F(SlicesTest, AnOwnThatTakesTheStateAwayTakesTheHalfPartWithIt) {
  Pushing& push = Begin({2, 4}, 1);
  GoToHalf(&push, 2);
  OwnEmpty(2);
  EXPECT_FALSE(HoldsHalf(2));
  GoToItsEnd(&push);
  EXPECT_EQ(push.reply.parts.at(0).code, PartCode::kWrongOwner);
  EXPECT_EQ(push.reply.parts.at(1).code, PartCode::kOk);
  EXPECT_THAT(Rows(2), Each(0));
  EXPECT_FALSE(InWindow(2, 1));
  EXPECT_THAT(Rows(4), Each(1));
}

TEST_F(SlicesTest, APartThatIsStillBeingCheckedIsJudgedAnew) {
  Pushing& push = Begin({2}, 1);
  ASSERT_EQ(Go(&push), Progress::kMore);
  ASSERT_FALSE(HoldsHalf(2));
  Pushing& other = Begin({2}, 1);
  EXPECT_EQ(Go(&other, false, 1 << 20), Progress::kDone);
  GoToItsEnd(&push);
  EXPECT_TRUE(push.reply.parts.at(0).skipped);
  Pushing& stale = Begin({2}, 3);
  ASSERT_EQ(Go(&stale), Progress::kMore);
  ASSERT_FALSE(HoldsHalf(2));
  Forget(50);
  GoToItsEnd(&stale);
  EXPECT_EQ(stale.reply.parts.at(0).code, PartCode::kStaleLease);
  EXPECT_THAT(Rows(2), Each(1));
}

TEST_F(SlicesTest, APullInSlicesHasTheRowsOfThePartsThatAreStillOwned) {
  for (const uint32_t partition : {0u, 2u, 4u}) GoToItsEnd(&Begin({partition}, partition));
  wire::Parts parts;
  std::vector<uint64_t> keys;
  for (const uint32_t partition : {0u, 2u, 4u}) {
    parts.Add(partition, 1, {{kTable, 2}, {kTable, 1}});
    keys.insert(keys.end(), {1, 100 + partition, 2});
  }
  RequestProgress progress;
  PullReply reply;
  bool first = true;
  for (int slices = 0;; ++slices) {
    WorkLimit work(1);
    const Slice slice{std::exchange(first, false), false, &work, nullptr};
    if (owned_.Pull({parts, keys}, slice, &reply, &progress) == Progress::kDone) {
      EXPECT_GE(slices, 6);
      break;
    }
    if (slices == 3) OwnEmpty(2);  // in its second group
  }
  ASSERT_THAT(reply.parts, SizeIs(3));
  EXPECT_EQ(reply.parts[0].code, PartCode::kOk);
  EXPECT_EQ(reply.parts[1].code, PartCode::kWrongOwner);
  EXPECT_EQ(reply.parts[2].code, PartCode::kOk);
  const std::span<const float> values = reply.values.floats();
  EXPECT_THAT(std::vector<float>(values.begin(), values.end()),
              ElementsAre(1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1));
}

}  // namespace owned_partitions_test
}  // namespace muster::ps
