#include "store/names/part_queue.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RetryLimits kPartLimits{
    .first = milliseconds(100), .longest = milliseconds(400), .total = milliseconds(1'000)};

const absl::Status kBusy = absl::UnavailableError("busy");

TEST(PartQueueTest, EveryPartOnceInOrder) {
  PartQueue queue(kPartLimits, 1, 2);
  EXPECT_EQ(queue.Next({}).part, 0u);
  EXPECT_EQ(queue.Next({}).part, 1u);
  const PartTurn none = queue.Next({});
  EXPECT_FALSE(none.part.has_value() || none.wait.has_value());
  queue.GrowTo(3);
  EXPECT_EQ(queue.Next({}).part, 2u);
  for (const size_t part : {1, 2, 0}) {
    EXPECT_FALSE(queue.AllDone());
    queue.Done(part);
  }
  EXPECT_TRUE(queue.AllDone());
}

TEST(PartQueueTest, AFailedPartIsTriedAgainAndNoOtherBeginsInThePause) {
  PartQueue queue(kPartLimits, 1, 3);
  queue.Next({});
  queue.Next({});
  queue.Failed(0, kBusy, {}, {});
  const PartTurn pause = queue.Next({});
  ASSERT_TRUE(pause.wait.has_value());
  EXPECT_FALSE(pause.part.has_value()) << "part 2 waits, too";
  EXPECT_GE(*pause.wait, milliseconds(50));
  const TimePoint later = TimePoint() + *pause.wait;
  EXPECT_EQ(queue.Next(later).part, 0u);
  EXPECT_EQ(queue.Next(later).part, 2u);
  EXPECT_TRUE(queue.failure().ok());
}

TEST(PartQueueTest, APartThatTakesLongerThanTheLimitIsTriedAgain) {
  PartQueue queue(kPartLimits, 1, 1);
  TimePoint now;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(queue.Next(now).part, 0u);
    now += seconds(20);
    queue.Failed(0, kBusy, {}, now, TryTime::kExcused);
    ASSERT_TRUE(queue.failure().ok());
    now += *queue.Next(now).wait;
  }
  ASSERT_EQ(queue.Next(now).part, 0u);
  now += seconds(20);
  queue.Failed(0, kBusy, {}, now);
  EXPECT_FALSE(queue.failure().ok()) << "silence counts";
}

TEST(PartQueueTest, TheServiceMayAskForAPause) {
  PartQueue queue(kPartLimits, 1, 2);
  queue.Next({});
  queue.Failed(0, kBusy, milliseconds(700), {});
  EXPECT_EQ(queue.Next({}).wait, milliseconds(700));
}

TEST(PartQueueTest, APartThatFailsForTooLongEndsAll) {
  PartQueue queue(kPartLimits, 1, 3);
  TimePoint now;
  queue.Next(now);
  queue.Next(now);
  queue.Done(1);
  int tries = 1;
  for (; queue.failure().ok(); ++tries) {
    queue.Failed(0, kBusy, {}, now);
    const PartTurn turn = queue.Next(now);
    if (!turn.wait.has_value()) break;
    now += *turn.wait;
    ASSERT_EQ(queue.Next(now).part, 0u);
    ASSERT_LT(tries, 20);
  }
  EXPECT_GE(tries, 3);
  EXPECT_LE(now, TimePoint(milliseconds(1'000)));
  EXPECT_EQ(queue.failure(), kBusy);
  const PartTurn turn = queue.Next(now + seconds(1));
  EXPECT_FALSE(turn.part.has_value() || turn.wait.has_value()) << "part 2 does not begin";
}

TEST(PartQueueTest, EveryPartHasTimeOfItsOwn) {
  PartQueue queue(kPartLimits, 1, 2);
  queue.Next({});
  queue.Done(0);
  const TimePoint late(seconds(60));
  EXPECT_EQ(queue.Next(late).part, 1u);
  queue.Failed(1, kBusy, {}, late);
  EXPECT_TRUE(queue.failure().ok());
}

TEST(PartQueueTest, AFailureThatDoesNotPassEndsAllAndTheFirstOneIsKept) {
  PartQueue queue(kPartLimits, 1, 2);
  queue.Next({});
  queue.Next({});
  queue.Failed(1, absl::PermissionDeniedError("denied"), {}, {});
  queue.Failed(0, kBusy, {}, {});
  EXPECT_EQ(queue.failure(), absl::PermissionDeniedError("denied"));
}

}  // namespace
}  // namespace muster
