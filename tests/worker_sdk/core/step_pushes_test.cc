#include "worker_sdk/core/step_pushes.h"

#include "tests/worker_sdk/core/worker_core_fixture.h"

namespace muster::sdk {
namespace {

using worker_core_test::Token;
using worker_core_test::WorkerCoreTest;

/// A member of a group, which has no lease.
class StepPushesTest : public WorkerCoreTest {
 protected:
  StepPushesTest() { TakeMap(1); }
  void TakeMap(uint64_t restore_epoch) {
    WorkerExchangeReply reply = Reply();
    reply.map = MapOf(restore_epoch, restore_epoch);
    Exchange(reply);
  }
  bool Push(uint32_t run, uint32_t minibatch, uint64_t restore_epoch = 1) {
    const PushIdentity push{{}, MinibatchIndex(minibatch),  Token(1), RunNumber(run),
                            0,  RestoreEpoch(restore_epoch)};
    return core_.CommitStepMinibatch(push, BatchOfAllPartitions(), now_);
  }
  const StepPushes& pushes() const { return core_.step_pushes(); }
};

TEST_F(StepPushesTest, ARunIsHeldUntilAnotherBegins) {
  EXPECT_FALSE(core_.Holds(Token(1), RunNumber(0)));
  core_.BeginStepRun(RunNumber(3));
  EXPECT_TRUE(core_.Holds(Token(1), RunNumber(3)));
  EXPECT_FALSE(Push(2, 0)) << "of an earlier run";
  core_.BeginStepRun(RunNumber(0));
  EXPECT_FALSE(core_.Holds(Token(1), RunNumber(3)));
  EXPECT_FALSE(core_.Holds(Token(1), RunNumber(0)));
}

TEST_F(StepPushesTest, EverythingIsAnsweredWhenEveryPartIsInTheRows) {
  core_.BeginStepRun(RunNumber(1));
  EXPECT_TRUE(Push(1, 0));
  EXPECT_FALSE(pushes().all_answered());
  AnswerAll(wire::PartCode::kRetry);
  EXPECT_FALSE(pushes().all_answered());
  EXPECT_EQ(pushes().pushed_under(), RestoreEpoch());
  now_ += PartSender::kBackoffMax;
  AnswerAll(wire::PartCode::kOk);
  EXPECT_TRUE(pushes().all_answered());
  EXPECT_EQ(pushes().pushed_under(), RestoreEpoch(1));
}

TEST_F(StepPushesTest, TheOldestMapCounts) {
  core_.BeginStepRun(RunNumber(1));
  EXPECT_TRUE(Push(1, 0));
  AnswerAll(wire::PartCode::kOk);
  TakeMap(2);
  EXPECT_TRUE(Push(1, 1));
  AnswerAll(wire::PartCode::kOk);
  EXPECT_EQ(pushes().pushed_under(), RestoreEpoch(1));
  core_.BeginStepRun(RunNumber(2));
  EXPECT_EQ(pushes().pushed_under(), RestoreEpoch()) << "it has pushed nothing";
  EXPECT_TRUE(Push(2, 0));
  AnswerAll(wire::PartCode::kOk);
  EXPECT_EQ(pushes().pushed_under(), RestoreEpoch(2));
}

TEST_F(StepPushesTest, APushWaitsForTheMapThatItsStepNeeds) {
  core_.BeginStepRun(RunNumber(1));
  EXPECT_TRUE(Push(1, 0, /*restore_epoch=*/2));
  EXPECT_TRUE(core_.Flush(now_).empty());
  TakeMap(2);
  now_ += PartSender::kBackoffMax;
  AnswerAll(wire::PartCode::kOk);
  EXPECT_EQ(pushes().pushed_under(), RestoreEpoch(2));
}

TEST_F(StepPushesTest, WhatAnEarlierRunHasPushedIsNotWaitedFor) {
  core_.BeginStepRun(RunNumber(1));
  EXPECT_TRUE(Push(1, 0));
  const SendRequests sent = core_.Flush(now_);
  core_.BeginStepRun(RunNumber(2));
  EXPECT_TRUE(pushes().all_answered());
  EXPECT_EQ(core_.outstanding_pushes(), 0u);
  for (const SendRequest& request : sent) Answer(request, wire::PartCode::kOk);
  EXPECT_EQ(pushes().pushed_under(), RestoreEpoch()) << "a late answer says nothing of this run";
}

TEST_F(StepPushesTest, AStalePushIsNotInTheRows) {
  core_.BeginStepRun(RunNumber(1));
  EXPECT_TRUE(Push(1, 0));
  AnswerAll(wire::PartCode::kStaleLease);
  EXPECT_FALSE(pushes().all_answered());
}

TEST_F(StepPushesTest, APushThatCanNeverWorkFailsTheSession) {
  core_.BeginStepRun(RunNumber(1));
  EXPECT_TRUE(Push(1, 0));
  for (const SendRequest& request : core_.Flush(now_)) {
    Answer(request, wire::PartCode::kBadRequest, "no such table");
  }
  EXPECT_THAT(core_.failure(),
              ::testing::HasSubstr("refused a push of this worker: no such table"));
}

}  // namespace
}  // namespace muster::sdk
