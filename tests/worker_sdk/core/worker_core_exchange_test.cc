// The exchange between a worker and its master: when, how often, and in which order.
#include "tests/worker_sdk/core/worker_core_fixture.h"

namespace muster::sdk {
namespace worker_core_test {

TEST_F(WorkerCoreTest, AGrantIsTakenOnce) {
  ShardRun shard = GrantAndTake(1, Token(5));
  WorkerExchangeReply reply = Reply();
  reply.lost = {Token(5)};
  EXPECT_EQ(Exchange(reply).newest_grant, Token(5));
  reply = Reply();
  reply.grants = {Grant(1, Token(5)), Grant(2, Token(4))};
  Exchange(reply);
  EXPECT_EQ(core_.TakeShard(), std::nullopt);
}

TEST_F(WorkerCoreTest, WantsShardsAheadOfTheLoops) {
  EXPECT_EQ(Exchange(Reply()).want, 2u);
  WorkerExchangeReply reply = Reply();
  reply.grants = {Grant(1, Token(1)), Grant(2, Token(2))};
  Exchange(reply);
  EXPECT_EQ(Exchange(Reply()).want, 0u);
  core_.TakeShard();
  EXPECT_LE(core_.NextExchange(now_), now_);
  EXPECT_EQ(Exchange(Reply()).want, 1u);
  EXPECT_GT(core_.NextExchange(now_), now_ + milliseconds(400));
  core_.SetWaiting(5);
  EXPECT_EQ(Exchange(Reply()).want, 4u);
}

/// A loop whose shards take no time.
class FastLoopTest : public WorkerCoreTest {
 protected:
  void GiveWhatWasWanted() {
    WorkerExchangeReply reply = Reply();
    reply.lost = std::exchange(over_, {});
    for (uint32_t i = 0; i < want_; ++i) {
      ++granted_;
      reply.grants.push_back(Grant(granted_, Token(granted_)));
    }
    want_ = Exchange(reply).want;
  }
  void BecomeFast() {
    for (int exchange = 0; exchange < 20; ++exchange) {
      GiveWhatWasWanted();
      while (core_.queued() > 0) over_.push_back(core_.TakeShard()->grant.token);
    }
  }

  uint64_t granted_ = 0;
  uint32_t want_ = 0;
  std::vector<LeaseToken> over_;
};

TEST_F(FastLoopTest, ShortShardsAreFetchedManyAtATimeAndAnExchangeWaitsTheLongerTheMoreItLists) {
  BecomeFast();
  EXPECT_GT(want_, 1'000u);

  GiveWhatWasWanted();
  const size_t given = core_.queued();
  while (core_.queued() > 0 && core_.NextExchange(now_) > now_ + milliseconds(100)) {
    core_.TakeShard();
  }
  EXPECT_GT(core_.queued(), given / 4) << "more are fetched before all are taken";
  EXPECT_LT(core_.queued(), given * 3 / 4) << "more are not fetched for every single one";
  EXPECT_GT(core_.NextExchange(now_), now_) << "there are thousands of leases to list";
}

TEST_F(FastLoopTest, WhatAFastLoopHadFetchedGoesBackWhenItBecomesSlow) {
  BecomeFast();
  GiveWhatWasWanted();
  const size_t held = core_.queued();
  EXPECT_GT(held, 1'000u);
  EXPECT_THAT(Exchange(Reply()).returned, IsEmpty());
  now_ += std::chrono::hours(1);
  const WorkerExchangeRequest request = Exchange(Reply());
  EXPECT_EQ(request.want, 0u);
  EXPECT_LT(core_.queued(), 20u);
  EXPECT_GT(core_.queued(), 1u);
  EXPECT_EQ(request.held.size(), core_.queued());
  ASSERT_THAT(request.returned, Not(IsEmpty()));
  EXPECT_EQ(request.returned[0].token, Token(granted_)) << "the newest first";
  EXPECT_EQ(request.returned[0].hand_back, HandBack::kUncharged);
  EXPECT_FALSE(request.returned[0].failed);
  const ShardRun next = *core_.TakeShard();
  EXPECT_EQ(next.grant.token, Token(granted_ - held + 1)) << "the oldest stay";
}

TEST_F(WorkerCoreTest, GivenUpShardsAreToldUntilAnswered) {
  ShardRun shard = GrantAndTake(1, Token(1));
  core_.GiveUp(Token(1), shard.run.Next(), ShardFailure{"of another run"});
  core_.GiveUp(Token(9), shard.run, ShardFailure{"not held"});
  EXPECT_TRUE(core_.Holds(Token(1), shard.run));
  core_.GiveUp(Token(1), shard.run, ShardFailure{"NaN in table t"});
  core_.BeginExchange({}, now_);
  core_.OnExchangeFailed(now_);
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_EQ(request.returned[0].reason, "NaN in table t");
  EXPECT_THAT(request.held, IsEmpty());
  EXPECT_FALSE(request.returned[0].fatal);
  EXPECT_THAT(Exchange(Reply()).returned, IsEmpty());
}

TEST_F(WorkerCoreTest, AFailureSaysWhetherItIsFatalAndItsReasonHasABound) {
  const ShardRun shard = GrantAndTake(1, Token(1));
  core_.GiveUp(Token(1), shard.run, ShardFailure{std::string(100'000, 'x'), /*fatal=*/true});
  const WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_TRUE(request.returned[0].fatal);
  EXPECT_THAT(request.returned[0].reason, SizeIs(::testing::Le(4'000u)));
  EXPECT_THAT(request.returned[0].reason, SizeIs(::testing::Gt(3'900u)));
}

TEST_F(WorkerCoreTest, AHandBackSaysWhoseDoingItIs) {
  WorkerExchangeReply reply = Reply();
  reply.grants = {Grant(1, Token(1)), Grant(2, Token(2)), Grant(3, Token(3))};
  Exchange(reply);
  const ShardRun left = *core_.TakeShard(), short_of_files = *core_.TakeShard();
  ASSERT_TRUE(core_.StartMinibatch(Token(1), left.run));
  core_.GiveUp(Token(1), left.run);
  core_.GiveUp(Token(2), short_of_files.run, ShardFailure{"no descriptors", false, true});
  core_.Leave();
  const WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(3));
  EXPECT_EQ(request.returned[0].hand_back, HandBack::kByTrainer);
  EXPECT_EQ(request.returned[0].minibatches_started, 1u);
  EXPECT_EQ(request.returned[1].hand_back, HandBack::kShortage);
  EXPECT_EQ(request.returned[1].reason, "no descriptors");
  EXPECT_EQ(request.returned[1].failed, false);
  EXPECT_EQ(request.returned[2].hand_back, HandBack::kUncharged);
}

TEST_F(WorkerCoreTest, WhatIsGivenUpDuringAnExchangeIsToldInTheNext) {
  ShardRun first = GrantAndTake(1, Token(1)), second = GrantAndTake(2, Token(2));
  core_.GiveUp(Token(1), first.run);
  EXPECT_THAT(core_.BeginExchange({}, now_).returned, SizeIs(1));
  core_.GiveUp(Token(2), second.run);
  core_.OnExchangeReply(Reply(), now_);
  EXPECT_FALSE(core_.idle());
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_EQ(request.returned[0].token, Token(2));
  EXPECT_TRUE(core_.idle());
}

TEST_F(WorkerCoreTest, DrainHandsBackTheQueueAndFinishesTheLoop) {
  ShardRun shard = GrantAndTake(1, Token(1));
  WorkerExchangeReply reply = Reply();
  reply.directive = JobDirective::kDrain;
  reply.grants = {Grant(2, Token(2))};
  Exchange(reply);
  EXPECT_TRUE(core_.draining());
  EXPECT_EQ(core_.TakeShard(), std::nullopt);
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_EQ(request.returned[0].token, Token(2));
  EXPECT_EQ(request.returned[0].failed, false);
  EXPECT_EQ(request.want, 0u);
  EXPECT_TRUE(Commit(shard, 0));
  AnswerAll(PartCode::kOk);
  Complete(shard);
  // A re-run would not end; it goes back.
  reply = Reply();
  reply.map = RestoredMap(2, {0});
  reply.verdicts = {Verdict(shard, DoneCode::kReverify, 2)};
  EXPECT_THAT(Exchange(reply).done, SizeIs(1));
  AnswerAll(PartCode::kMissing);
  EXPECT_THAT(Exchange(Reply()).returned, SizeIs(1));
  EXPECT_TRUE(core_.idle());
}

TEST_F(WorkerCoreTest, AGrantOnItsWayIsHandedBackBeforeTheCoreIsIdle) {
  core_.BeginExchange({}, now_);
  core_.Abandon();
  EXPECT_FALSE(core_.idle());
  WorkerExchangeReply reply = Reply();
  reply.grants = {Grant(1, Token(1))};
  core_.OnExchangeReply(reply, now_);
  EXPECT_FALSE(core_.idle());
  EXPECT_THAT(Exchange(Reply()).returned, SizeIs(1));
  EXPECT_TRUE(core_.idle());
}

/// Partition 0 is restored between version `base` and the next one.
PartitionMapChanges ChangesFrom(uint64_t base) {
  const PartitionMap after = RestoredMap(base + 1, {0});
  return {MapVersion(base),
          after.version,
          after.restore_epoch,
          {{PartitionId(0), after.partitions[0]}},
          {}};
}

TEST_F(WorkerCoreTest, ChangesAreAppliedToTheMapThatTheyAreOf) {
  EXPECT_EQ(Exchange(Reply()).map_base, MapVersion());
  WorkerExchangeReply reply = Reply();
  reply.map = MapOf(1, 1);
  Exchange(reply);
  reply = Reply();
  reply.map_changes = ChangesFrom(1);
  const WorkerExchangeRequest request = Exchange(reply);
  EXPECT_EQ(request.map_version, MapVersion(1));
  EXPECT_EQ(request.map_base, MapVersion(1));
  EXPECT_EQ(*core_.map(), RestoredMap(2, {0}));
  EXPECT_EQ(Exchange(reply).map_base, MapVersion(2)) << "it has them already";
  EXPECT_EQ(*core_.map(), RestoredMap(2, {0}));
  reply.map_changes = ChangesFrom(2);
  reply.map_changes->base = MapVersion(1);
  Exchange(reply);
  EXPECT_EQ(core_.map()->version, MapVersion(3)) << "what changed since 2 changed since 1";
}

TEST_F(WorkerCoreTest, ChangesThatAnAnswerBeforeThemIsMissingForAreRefused) {
  WorkerExchangeReply reply = Reply();
  reply.map_changes = ChangesFrom(1);
  Exchange(reply);
  EXPECT_EQ(core_.map(), nullptr) << "it has none";
  reply = Reply();
  reply.map = MapOf(1, 1);
  Exchange(reply);
  reply = Reply();
  reply.map_changes = ChangesFrom(2);
  EXPECT_EQ(Exchange(reply).map_base, MapVersion(1));
  EXPECT_EQ(*core_.map(), MapOf(1, 1));
  WorkerExchangeRequest request = Exchange(Reply());
  EXPECT_EQ(request.map_version, MapVersion(1));
  EXPECT_EQ(request.map_base, MapVersion()) << "it wants the whole map";
  reply = Reply();
  reply.map = RestoredMap(3, {0});
  Exchange(reply);
  EXPECT_EQ(*core_.map(), *reply.map);
  EXPECT_EQ(Exchange(Reply()).map_base, MapVersion(3));
  reply = Reply();
  reply.map_changes = ChangesFrom(3);
  reply.map_changes->partitions[0].partition = PartitionId(kPartitions);
  Exchange(reply);
  EXPECT_EQ(core_.map()->version, MapVersion(3)) << "there is no such partition";
  EXPECT_EQ(Exchange(Reply()).map_base, MapVersion());
}

TEST_F(WorkerCoreTest, EndDropsEverythingAndStopsCalling) {
  ShardRun shard = GrantAndTake(1, Token(1));
  WorkerExchangeReply reply = Reply();
  reply.directive = JobDirective::kEnd;
  Exchange(reply);
  EXPECT_TRUE(core_.ended());
  EXPECT_FALSE(core_.Holds(Token(1), shard.run));
  EXPECT_EQ(core_.NextExchange(now_), TimePoint::max());
  EXPECT_TRUE(core_.draining());
}

TEST_F(WorkerCoreTest, AfterTheEndNothingIsTakenAndNothingTold) {
  WorkerExchangeReply reply = Reply();
  reply.map = MapOf(1, 1);
  reply.grants = {Grant(1, Token(1)), Grant(2, Token(2)), Grant(3, Token(3))};
  Exchange(reply);
  const ShardRun loop = *core_.TakeShard(), failed = *core_.TakeShard();
  Commit(loop, 0);
  core_.BeginExchange({}, now_);
  core_.GiveUp(Token(2), failed.run, ShardFailure{"too late to be told"});
  reply = Reply();
  reply.directive = JobDirective::kEnd;
  core_.OnExchangeReply(reply, now_);
  EXPECT_TRUE(core_.idle());
  EXPECT_EQ(core_.queued(), 0u);
  EXPECT_EQ(core_.TakeShard(), std::nullopt);
  EXPECT_EQ(core_.outstanding_pushes(), 0u);
  EXPECT_FALSE(Commit(loop, 1));
  EXPECT_THAT(core_.Flush(now_), IsEmpty());
}

TEST_F(WorkerCoreTest, RestartedMasterGetsEverythingHeldAndAnOlderOneIsIgnored) {
  ShardRun shard = GrantAndTake(1, Token(1));
  Exchange(Reply(2));
  WorkerExchangeReply old = Reply(1);
  old.lost = {Token(1)};
  WorkerExchangeRequest request = Exchange(old);
  ASSERT_THAT(request.held, SizeIs(1));
  EXPECT_EQ(request.held[0].token, Token(1));
  EXPECT_TRUE(core_.Holds(Token(1), shard.run));
  EXPECT_GE(core_.NextExchange(now_), now_ - milliseconds(10) + milliseconds(50))
      << "as if there was no answer";
  EXPECT_THAT(Exchange(Reply(2)).held, SizeIs(1));
}

TEST_F(WorkerCoreTest, TheBackOffOfExchangesDoublesAndASuccessEndsIt) {
  const auto next = [&] { return core_.NextExchange(now_) - now_; };
  EXPECT_EQ(next(), milliseconds(0)) << "the first one";
  for (int round = 0; round < 2; ++round) {
    for (const int expected : {50, 100, 200, 400, 800, 1'000, 1'000}) {
      core_.BeginExchange({}, now_);
      now_ += milliseconds(3);
      core_.OnExchangeFailed(now_);
      EXPECT_GE(next(), milliseconds(expected));
      EXPECT_LE(next(), milliseconds(expected) * 5 / 4);
      now_ += next();
    }
    core_.BeginExchange({}, now_);
    WorkerExchangeReply reply = Reply();
    reply.map = MapOf(1, 1);
    core_.OnExchangeReply(reply, now_);
    EXPECT_EQ(next(), milliseconds(500)) << "the heartbeat";
  }
}

TEST_F(WorkerCoreTest, EveryExchangeSaysWhoCallsAndWhereItsTimeGoes) {
  Exchange(Reply());
  const WorkerExchangeRequest request = core_.BeginExchange({.wait_pull_us = 7}, now_);
  EXPECT_EQ(request.worker, "worker-0");
  EXPECT_EQ(request.incarnation, 9u);
  EXPECT_EQ(request.sequence, 2u);
  EXPECT_EQ(request.times.wait_pull_us, 7u);
}

TEST_F(WorkerCoreTest, TheMasterSetsTheHeartbeat) {
  WorkerExchangeReply reply = Reply();
  reply.map = MapOf(1, 1);
  reply.heartbeat_interval = milliseconds(3'000);
  Exchange(reply);
  EXPECT_EQ(core_.NextExchange(now_), now_ + milliseconds(2'990));
  Exchange(Reply());
  EXPECT_EQ(core_.NextExchange(now_), now_ + milliseconds(2'990)) << "0: as before";
}

TEST_F(WorkerCoreTest, AMapThatPartsWaitForIsAskedForEarlier) {
  GrantAndTake(1, Token(1));
  Exchange(Reply());
  core_.StartPull(BatchOfAllPartitions(), now_);
  AnswerAll(PartCode::kWrongOwner);
  EXPECT_EQ(core_.NextExchange(now_), now_ + milliseconds(10)) << "20 ms after the last exchange";
  Exchange(Reply());
  EXPECT_EQ(core_.NextExchange(now_), now_ + milliseconds(490)) << "there was none";
}

/// The effect of each event on a worker whose next exchange would be the heartbeat.
TEST_F(WorkerCoreTest, WhatTheMasterShouldKnowDoesNotWaitForTheHeartbeat) {
  const auto soon = [&] {
    // Two milliseconds after the last exchange, which was ten ago.
    const bool urgent = core_.NextExchange(now_) == now_ - milliseconds(8);
    EXPECT_TRUE(urgent || core_.NextExchange(now_) == now_ + milliseconds(490));
    Exchange(Reply());
    return urgent;
  };
  WorkerExchangeReply reply = Reply();
  reply.map = MapOf(1, 1);
  for (uint64_t i = 1; i <= 6; ++i) reply.grants.push_back(Grant(i, Token(i)));
  Exchange(reply);
  EXPECT_FALSE(soon());
  const ShardRun given_up = *core_.TakeShard();
  EXPECT_FALSE(soon()) << "there are more than enough left";
  core_.GiveUp(Token(1), given_up.run);
  EXPECT_TRUE(soon()) << "a shard was given up";

  const ShardRun stale = *core_.TakeShard();
  soon();
  Commit(stale, 0);
  EXPECT_FALSE(soon()) << "a push alone is nothing to tell";
  AnswerAll(PartCode::kStaleLease);
  EXPECT_TRUE(soon()) << "a lease is not held any more";

  const ShardRun done = *core_.TakeShard();
  soon();
  Commit(done, 0);
  Complete(done);
  EXPECT_FALSE(soon()) << "not every part is in the rows";
  AnswerAll(PartCode::kOk);
  EXPECT_TRUE(soon()) << "a shard is done";
  reply = Reply();
  reply.map = RestoredMap(2, {0});
  Exchange(reply);
  EXPECT_FALSE(soon()) << "a partition is being asked";
  AnswerAll(PartCode::kMissing);
  EXPECT_TRUE(soon()) << "a run begins again";

  EXPECT_EQ(core_.TakeShard()->grant.token, Token(3));
  soon();
  core_.Leave();
  EXPECT_TRUE(soon()) << "the queue is handed back";
  EXPECT_EQ(core_.queued(), 0u);
  core_.Leave();
  EXPECT_FALSE(soon()) << "once";
}

TEST_F(WorkerCoreTest, LeavingIsToldEvenWithNothingInTheQueue) {
  GrantAndTake(1, Token(1));
  Exchange(Reply());
  core_.Leave();
  EXPECT_LT(core_.NextExchange(now_), now_);
}

TEST_F(WorkerCoreTest, FailedExchangesBackOff) {
  Exchange(Reply());
  for (int i = 0; i < 200; ++i) {  // a master may be away for long
    core_.BeginExchange({}, now_);
    EXPECT_EQ(core_.NextExchange(now_), TimePoint::max());
    core_.OnExchangeFailed(now_);
    auto wait = core_.NextExchange(now_) - now_;
    EXPECT_GE(wait, milliseconds(50)) << i;
    EXPECT_LE(wait, milliseconds(1250)) << i;
    now_ += wait;
  }
}

TEST_F(WorkerCoreTest, NoShardIsAskedForWhileNoneCanBeRead) {
  core_.RestUntil(now_ + milliseconds(15));
  core_.RestUntil(now_ + milliseconds(5));
  EXPECT_EQ(Exchange(Reply()).want, 0u);
  EXPECT_EQ(Exchange(Reply()).want, 0u);
  EXPECT_EQ(Exchange(Reply()).want, 2u);
}

TEST_F(WorkerCoreTest, EndingTheLoopsHandsBackWhatIsInThemAndNotWhatTheyCompleted) {
  ShardRun completed = GrantAndTake(1, Token(1));
  Commit(completed, 0);
  Complete(completed);
  ShardRun loop = GrantAndTake(2, Token(2));
  Commit(loop, 0);
  EXPECT_EQ(core_.EndLoops(), std::vector<LeaseToken>{Token(2)});
  EXPECT_FALSE(core_.Holds(Token(2), loop.run));
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_EQ(request.returned[0].failed, false);
  EXPECT_THAT(request.done, IsEmpty());
  AnswerAll(PartCode::kOk);
  EXPECT_THAT(Exchange(Reply()).done, SizeIs(1));
}

TEST_F(WorkerCoreTest, AbandonHandsBackAllButWhatIsDone) {
  ShardRun done = GrantAndTake(1, Token(1));
  Complete(done);
  ShardRun loop = GrantAndTake(2, Token(2));
  Commit(loop, 0);
  core_.Abandon();
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_EQ(request.returned[0].token, Token(2));
  ASSERT_THAT(request.done, SizeIs(1));
  EXPECT_EQ(core_.outstanding_pushes(), 0u);
}

TEST_F(WorkerCoreTest, WhatWasSeenOfServersIsToldNowAndThen) {
  ShardRun shard = GrantAndTake(7, Token(1));
  Commit(shard, 0);
  AnswerAll(PartCode::kOk);
  const WorkerExchangeRequest first = Exchange(Reply());
  ASSERT_THAT(first.peers, SizeIs(kServers));
  EXPECT_EQ(first.peers[0].pushes, 1u);
  EXPECT_THAT(Exchange(Reply()).peers, IsEmpty());
  now_ += milliseconds(500);
  EXPECT_THAT(Exchange(Reply()).peers, SizeIs(kServers));
}

TEST_F(WorkerCoreTest, WhatIsToldOfServersAndDelaysHasABoundAndGoesRound) {
  constexpr uint32_t kMany = kPeersPerCallMax + 10;
  WorkerExchangeReply reply = Reply();
  reply.map = MapOf(1, 1);
  reply.map->servers.clear();
  reply.map->partitions.clear();
  for (uint32_t s = 0; s < kMany; ++s) {
    reply.map->servers.push_back({ServerId(s), ServerIncarnation(1), "ps", {{"x"}}});
    PartitionEntry entry;
    entry.owner = ServerId(s);
    entry.owner_incarnation = ServerIncarnation(1);
    entry.epoch = OwnerEpoch(1);
    reply.map->partitions.push_back(entry);
  }
  for (uint32_t d = 0; d < kDelaysPerCallMax + 10; ++d) {
    reply.grants.push_back(Grant(0, Token(d + 1)));
    reply.grants.back().shard.dataset = DatasetId(d);
  }
  Exchange(reply);
  while (const std::optional<ShardRun> shard = core_.TakeShard()) {
    core_.CommitMinibatch(shard->grant.token, shard->run, MinibatchIndex(0),
                          std::make_shared<RowBatch>(), now_, {now_});
  }
  auto batch = std::make_shared<RowBatch>();
  for (uint32_t p = 0; p < kMany; ++p) batch->plan.parts.push_back({.partition = PartitionId(p)});
  batch->plan.keys.resize(1);
  core_.StartPull(batch, now_);
  AnswerAll(PartCode::kOk);
  WorkerExchangeRequest request = Exchange(Reply());
  EXPECT_THAT(request.delays, SizeIs(kDelaysPerCallMax));
  ASSERT_THAT(request.peers, SizeIs(kPeersPerCallMax));
  EXPECT_EQ(request.peers[0].server, ServerId(0));
  now_ += milliseconds(500);
  request = Exchange(Reply());
  ASSERT_THAT(request.peers, SizeIs(kPeersPerCallMax));
  EXPECT_EQ(request.peers[0].server, ServerId(kPeersPerCallMax));
  EXPECT_EQ(request.peers[10].server, ServerId(0));
}

}  // namespace worker_core_test
}  // namespace muster::sdk
