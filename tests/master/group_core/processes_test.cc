#include "master/group_core/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::IsOk;
using testing::StatusIs;

GroupExchangeRequest Call(uint64_t incarnation, uint64_t sequence) {
  GroupExchangeRequest call;
  call.worker = "worker-0";
  call.incarnation = incarnation;
  call.sequence = sequence;
  return call;
}

TEST(ProcessesTest, AnOlderCallSaysNothing) {
  Processes processes;
  GroupExchangeRequest newer = Call(5, 2);
  newer.leaving = true;
  EXPECT_THAT(processes.Hear(newer, TimePoint()), IsOk());
  EXPECT_THAT(processes.Hear(Call(5, 1), TimePoint(milliseconds(7))),
              StatusIs(absl::StatusCode::kAlreadyExists, ::testing::_));
  const Process* process = processes.Find({"worker-0", 5});
  ASSERT_NE(process, nullptr);
  EXPECT_TRUE(process->leaves());
  EXPECT_EQ(process->heard, TimePoint(milliseconds(7))) << "it lives all the same";
}

TEST(ProcessesTest, ANewProcessOfAWorkerReplacesTheFormerForGood) {
  Processes processes;
  EXPECT_THAT(processes.Hear(Call(5, 9), TimePoint()), IsOk());
  EXPECT_THAT(processes.Hear(Call(6, 1), TimePoint()), IsOk());
  EXPECT_EQ(processes.Find({"worker-0", 5}), nullptr);
  EXPECT_THAT(processes.Hear(Call(5, 10), TimePoint()),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::_));
  EXPECT_NE(processes.Find({"worker-0", 6}), nullptr);
}

TEST(ProcessesTest, ADeadProcessIsNeverHeardAgain) {
  Processes processes;
  processes.Bury("worker-0", 5);
  EXPECT_TRUE(processes.IsDead({"worker-0", 5}));
  EXPECT_THAT(processes.Hear(Call(5, 1), TimePoint()),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::_));
  EXPECT_THAT(processes.Hear(Call(6, 1), TimePoint()), IsOk());
}

TEST(ProcessesTest, ASilentProcessIsForgottenAndMayComeBack) {
  Processes processes;
  GroupExchangeRequest call = Call(5, 1);
  call.introduction.emplace();
  EXPECT_THAT(processes.Hear(call, TimePoint()), IsOk());
  EXPECT_THAT(processes.TakeSilent(milliseconds(10), TimePoint(milliseconds(9))), ElementsAre());
  EXPECT_THAT(processes.TakeSilent(milliseconds(10), TimePoint(milliseconds(10))),
              ElementsAre(GroupProcess{"worker-0", 5}));
  EXPECT_THAT(processes.Hear(Call(5, 2), TimePoint()), IsOk());
  EXPECT_FALSE(processes.Find({"worker-0", 5})->introduction.has_value());
}

TEST(ProcessesTest, AnEvictionEnds) {
  Processes processes;
  EXPECT_THAT(processes.Hear(Call(5, 1), TimePoint()), IsOk());
  Process& process = *processes.Find({"worker-0", 5});
  process.introduction.emplace();
  process.evicted_until = TimePoint(milliseconds(10));
  processes.EndEvictions(TimePoint(milliseconds(9)));
  EXPECT_FALSE(process.usable());
  processes.EndEvictions(TimePoint(milliseconds(10)));
  EXPECT_TRUE(process.usable());
}

TEST(ProcessesTest, ThePauseOfTheMasterIsForgivenToWhoCatchesUp) {
  Processes processes;
  EXPECT_THAT(processes.Hear(Call(5, 1), TimePoint()), IsOk());
  Process& process = *processes.Find({"worker-0", 5});
  process.catches_up = TimePoint(milliseconds(3));
  processes.Forgive(milliseconds(20), TimePoint(milliseconds(25)));
  EXPECT_EQ(process.catches_up, TimePoint(milliseconds(23)));
  processes.Forgive(milliseconds(20), TimePoint(milliseconds(30)));
  EXPECT_EQ(process.catches_up, TimePoint(milliseconds(30))) << "not later than now";
}

TEST(ProcessesTest, ThePauseOfTheMasterIsNoSilence) {
  Processes processes;
  EXPECT_THAT(processes.Hear(Call(5, 1), TimePoint()), IsOk());
  processes.Forgive(milliseconds(20), TimePoint(milliseconds(25)));
  EXPECT_THAT(processes.TakeSilent(milliseconds(10), TimePoint(milliseconds(25))), ElementsAre());
}

}  // namespace
}  // namespace muster
