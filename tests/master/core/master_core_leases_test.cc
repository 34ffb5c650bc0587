/// Leases that wait for restored partitions, and leases that two workers re-assert.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using std::chrono::seconds;

class LeasesTest : public ::testing::Test, protected testing::CoreFixture {};

/// The worker asks partitions what they lack, and they are restored again before they answer.
TEST_F(LeasesTest, WhatWaitsForRestoredPartitionsGrowsNoOlderWhileTheyAreRestored) {
  options.leases.max_age = seconds(30);
  Start();
  Register(1);
  const auto grants = Want(2).grants;
  ASSERT_THAT(grants, SizeIs(2));
  WorkerExchangeRequest heartbeat = Request();
  Hold(grants, &heartbeat);
  heartbeat.held[0].phase = LeasePhase::kPushing;
  EXPECT_THAT(Exchange(heartbeat).lost, IsEmpty());
  for (uint64_t process = 2; process < 6; ++process) {
    Advance(seconds(8));
    Register(process);
    heartbeat.sequence = ++sequence;
    const auto lost = Exchange(heartbeat).lost;
    if (process == 5) {
      EXPECT_THAT(lost, ElementsAre(grants[1].token)) << "a loop goes on without them";
    } else {
      EXPECT_THAT(lost, IsEmpty());
    }
  }
  for (int i = 0; i < 3; ++i) {
    Advance(seconds(9));
    heartbeat.sequence = ++sequence;
    Exchange(heartbeat);
  }
  Advance(seconds(9));
  heartbeat.sequence = ++sequence;
  EXPECT_THAT(Exchange(heartbeat).lost, ElementsAre(grants[0].token, grants[1].token));
}

TEST_F(LeasesTest, WhoMayNotReassertAnEvaluationEndsNobodysLease) {
  options.datasets.push_back(testing::PlanFor("test", DatasetMode::kEvaluate, 1, 1));
  Start();
  Register(1);
  ASSERT_THAT(core->HelloWorker({"worker-9", 9}, StartNumber(0), At()),
              testing::IsOk());  // keeps the grace up
  Done(Want(5).grants);
  auto evaluate = Want(1).grants;
  ASSERT_THAT(evaluate, SizeIs(1));
  ASSERT_EQ(Snapshot(), 2u);
  Register(2);  // R grows, and nothing of the training is replayed
  auto other = evaluate;
  other[0].token = LeaseToken(evaluate[0].token.incarnation(), 100);
  evaluate[0].restore_epoch = core->partitions().restore_epoch();  // it was told again
  Restart();
  EXPECT_THAT(Want(0, evaluate).lost, IsEmpty());
  WorkerExchangeRequest late = Request("worker-1", 8);
  Hold(other, &late);
  EXPECT_THAT(Exchange(late).lost, ElementsAre(other[0].token));
  EXPECT_THAT(Want(0, evaluate).lost, IsEmpty());
  EXPECT_EQ(core->totals().reasserted_leases, 1u) << "the lease has not ended in between";
  EXPECT_THAT(Done(evaluate), ElementsAre(DoneCode::kAccepted));
}

}  // namespace
}  // namespace muster
