#include "master/core/workers/failures.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kWorker;
using testing::PartsFixture;
using ::testing::SizeIs;
using testing::TrainShard;

LeaseToken RunToken(uint64_t count) {
  return {MasterIncarnation(2), count};
}

class FailuresTest : public ::testing::Test, protected PartsFixture {
 protected:
  void HandBack(uint64_t token) {
    failures().HandedBack({.shard = TrainShard(0),
                           .token = RunToken(token),
                           .hand_back = HandBack::kByTrainer,
                           .minibatches_started = 0},
                          kWorker, At());
  }
};

TEST_F(FailuresTest, OnlyTheNewestLeasesThatEndedAreKnown) {
  options.limits.ended_leases = 2;
  Start();
  for (uint64_t i = 1; i <= 3; ++i) failures().Remember(RunToken(i), {TrainShard(i), kWorker});
  EXPECT_EQ(failures().Find(RunToken(1)), nullptr);
  ASSERT_NE(failures().Find(RunToken(2)), nullptr);
  EXPECT_EQ(failures().Find(RunToken(2))->shard, TrainShard(2));
  failures().Forget(RunToken(3));
  EXPECT_EQ(failures().Find(RunToken(3)), nullptr);
}

TEST_F(FailuresTest, AFailureIsToldOnceAndTheLastMakesTheShardFailed) {
  options.leases.failures_max = 2;
  Start();
  failures().Charge(RunToken(1), {TrainShard(0), kWorker}, "bad record", At());
  failures().Charge(RunToken(1), {TrainShard(0), kWorker}, "bad record", At());
  EXPECT_THAT(Events("shard-failure"),
              ElementsAre("worker-0: shard 0/0/0 of dataset 'train': failure 1 of 2: bad record"));
  failures().Charge(RunToken(2), {TrainShard(0), kWorker}, "bad again", At());
  EXPECT_THAT(Events("shard-failed"), ElementsAre(HasSubstr("the shard is FAILED: bad again")));
  EXPECT_EQ(books().ledger.queue().StateOf(TrainShard(0)), ShardState::kFailed);
}

TEST_F(FailuresTest, TheNewestReasonsAreKept) {
  constexpr size_t kFailures = Ledger::kReasonsMax + 1;
  options.leases.failures_max = 2 * kFailures;
  Start();
  for (uint64_t i = 1; i <= kFailures; ++i) {
    failures().Charge(RunToken(i), {TrainShard(0), kWorker}, fmt::format("number {}", i), At());
  }
  const std::vector<std::string>& reasons = books().ledger.FindFailure(TrainShard(0))->reasons;
  ASSERT_THAT(reasons, SizeIs(Ledger::kReasonsMax));
  EXPECT_EQ(reasons.front(), "worker-0: number 2");
  EXPECT_EQ(reasons.back(), "worker-0: number 17");
}

TEST_F(FailuresTest, OnlyFailuresOfTrainersCountAgainstTheirLimit) {
  options.leases.failures_max = 1;
  Start();
  Ledger& ledger = books().ledger;
  failures().Charge(RunToken(1), {TrainShard(0), kWorker}, "bad record", At());
  ledger.FailLost(TrainShard(1), "the topic has lost it");
  EXPECT_EQ(ledger.shards_failed_by_trainers(), 1u);
  std::vector<Mutation> mutations;
  ledger.Collect(&mutations);
  for (const Mutation& mutation : mutations) Apply(mutation, &state);
  EXPECT_EQ(Ledger(options.datasets, state, 1).shards_failed_by_trainers(), 1u) << "of a restart";
  ledger.Retry(TrainShard(0));
  EXPECT_EQ(ledger.shards_failed_by_trainers(), 0u);
}

TEST_F(FailuresTest, AShardThatIsTriedAgainHasNoHandBacks) {
  options.leases.failures_max = 1;
  Start();
  HandBack(1);
  HandBack(2);
  failures().Charge(RunToken(3), {TrainShard(0), kWorker}, "bad record", At());
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t retried, failures().Retry({TrainShard(0)}, At()));
  EXPECT_EQ(retried, 1u);
  HandBack(4);
  HandBack(5);
  EXPECT_THAT(Events("shard-failed"), SizeIs(1)) << "two in a row, not four";
  HandBack(6);
  EXPECT_THAT(Events("shard-failed"), SizeIs(2));
}

TEST_F(FailuresTest, ACrashBeforeTheRetryIsNotKnownAfterIt) {
  options.leases.failures_max = 1;
  Start();
  failures().Remember(RunToken(1), {TrainShard(0), kWorker});
  failures().Remember(RunToken(2), {TrainShard(1), kWorker});
  failures().Charge(RunToken(3), {TrainShard(0), kWorker}, "bad record", At());
  ASSERT_THAT(failures().Retry({TrainShard(0)}, At()), testing::IsOk());
  EXPECT_EQ(failures().Find(RunToken(1)), nullptr);
  EXPECT_NE(failures().Find(RunToken(2)), nullptr);
}

TEST_F(FailuresTest, NothingToTryAgainIsNoEvent) {
  Start();
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t retried, failures().Retry({}, At()));
  EXPECT_EQ(retried, 0u);
  EXPECT_THAT(Events("shards-retried"), IsEmpty());
}

}  // namespace
}  // namespace muster
