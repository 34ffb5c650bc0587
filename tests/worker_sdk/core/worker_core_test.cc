#include "worker_sdk/core/worker_core.h"

#include "tests/support/status_matchers.h"
#include "tests/worker_sdk/core/core_fixture.h"

namespace muster::sdk {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using wire::PartCode;

LeaseToken Token(uint64_t count, uint64_t incarnation = 1) {
  return LeaseToken(MasterIncarnation(incarnation), count);
}

class WorkerCoreTest : public ::testing::Test {
 protected:
  WorkerCoreTest() : core_({"worker-0", 9, 2, milliseconds(500)}) {}

  static WorkerExchangeReply Reply(uint64_t incarnation = 1) {
    WorkerExchangeReply reply;
    reply.master_incarnation = MasterIncarnation(incarnation);
    return reply;
  }
  static ShardGrant Grant(uint64_t index, LeaseToken token, uint64_t restore = 1) {
    ShardGrant grant{
        {DatasetId(0), EpochIndex(0), ShardIndex(index)}, token, RestoreEpoch(restore), {}};
    grant.work.record_count = 4;
    grant.work.minibatch_size = 2;
    grant.work.first_step = 100;
    return grant;
  }
  WorkerExchangeRequest Exchange(const WorkerExchangeReply& reply) {
    WorkerExchangeRequest request = core_.BeginExchange({}, now_);
    core_.OnExchangeReply(reply, now_);
    now_ += milliseconds(10);
    return request;
  }
  /// Grants shard `index` and takes it.
  ShardRun GrantAndTake(uint64_t index, LeaseToken token) {
    WorkerExchangeReply reply = Reply();
    reply.map = MapOf(1, 1);
    reply.grants = {Grant(index, token)};
    Exchange(reply);
    return *core_.TakeShard();
  }
  void AnswerAll(PartCode code) {
    for (const SendRequest& request : core_.Flush(now_)) Answer(request, code);
  }
  void Answer(const SendRequest& request, PartCode code, std::string_view text = "") {
    std::vector<wire::PartReply> replies(request.items.size());
    for (auto& reply : replies) reply.code = code;
    core_.OnReply(request, replies, nullptr, text, now_);
  }
  bool Commit(const ShardRun& shard, uint32_t minibatch) {
    core_.StartMinibatch(shard.grant.token, shard.run);
    return core_.CommitMinibatch(shard.grant.token, shard.run, MinibatchIndex(minibatch),
                                 BatchOfAllPartitions(), now_);
  }
  void Complete(const ShardRun& shard) {
    ShardMetrics metrics;
    metrics.records = 4;
    core_.CompleteShard(shard.grant.token, shard.run, metrics);
  }
  DoneVerdict Verdict(const ShardRun& shard, DoneCode code, uint64_t restore = 1) {
    return {shard.grant.shard, shard.grant.token, shard.run, code, RestoreEpoch(restore)};
  }

  WorkerCore core_;
  TimePoint now_{std::chrono::seconds(100)};
};

TEST_F(WorkerCoreTest, DoneIsReportedWhenEveryPartIsOkAndUntilTheVerdictCame) {
  ShardRun shard = GrantAndTake(7, Token(1));
  EXPECT_TRUE(Commit(shard, 0));
  std::vector<SendRequest> first = core_.Flush(now_);
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_EQ(first[0].push->step, 100u);
  EXPECT_TRUE(Commit(shard, 1));
  AnswerAll(PartCode::kOk);
  Complete(shard);
  Answer(first[0], PartCode::kOk);
  EXPECT_THAT(Exchange(Reply()).done, IsEmpty());
  Answer(first[1], PartCode::kOk);
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.done, SizeIs(1));
  EXPECT_EQ(request.done[0].metrics.records, 4u);
  ASSERT_THAT(request.held, SizeIs(1));
  EXPECT_EQ(request.held[0].phase, LeasePhase::kPushing);
  EXPECT_EQ(request.held[0].minibatches_started, 2u);
  core_.BeginExchange({}, now_);
  core_.OnExchangeFailed(now_);
  WorkerExchangeReply reply = Reply();
  reply.verdicts = {Verdict(shard, DoneCode::kAccepted)};
  EXPECT_THAT(Exchange(reply).done, SizeIs(1));
  request = Exchange(Reply());
  EXPECT_THAT(request.done, IsEmpty());
  EXPECT_THAT(request.held, IsEmpty());
  EXPECT_TRUE(core_.idle());
}

TEST_F(WorkerCoreTest, AfterARestoreOnlyWhatIsMissingRunsAgainBeforeQueuedShards) {
  ShardRun shard = GrantAndTake(7, Token(1));
  for (uint32_t m = 0; m < 3; ++m) Commit(shard, m);
  AnswerAll(PartCode::kOk);
  Complete(shard);
  WorkerExchangeReply reply = Reply();
  reply.grants = {Grant(8, Token(2), 2)};
  reply.verdicts = {Verdict(shard, DoneCode::kReverify, 2)};
  EXPECT_THAT(Exchange(reply).done, SizeIs(1));
  EXPECT_THAT(Exchange(Reply()).done, IsEmpty()) << "nothing is known of R 2 without its map";
  reply = Reply();
  reply.map = RestoredMap(2, {0});
  Exchange(reply);
  const std::vector<SendRequest> questions = core_.Flush(now_);
  ASSERT_THAT(questions, SizeIs(3)) << "one for each minibatch, to the restored partition alone";
  for (const SendRequest& question : questions) {
    ASSERT_THAT(question.items, SizeIs(1));
    EXPECT_EQ(question.keys, 0u);
    EXPECT_EQ(question.items[0].epoch, OwnerEpoch(2));
    const bool lost = question.push->minibatch == MinibatchIndex(1);
    Answer(question, lost ? PartCode::kMissing : PartCode::kOk);
  }
  EXPECT_THAT(Exchange(Reply()).done, IsEmpty());
  ShardRun again = *core_.TakeShard();
  EXPECT_EQ(again.grant.token, Token(1));
  EXPECT_EQ(again.run, shard.run.Next());
  EXPECT_THAT(again.minibatches, ElementsAre(MinibatchIndex(1)));
  EXPECT_FALSE(again.Has(MinibatchIndex(0)));
  Commit(again, 1);
  AnswerAll(PartCode::kOk);
  core_.CompleteShard(Token(1), again.run, {});
  // A late verdict on the earlier run means nothing.
  reply = Reply();
  reply.verdicts = {Verdict(shard, DoneCode::kReverify, 3)};
  WorkerExchangeRequest request = Exchange(reply);
  ASSERT_THAT(request.done, SizeIs(1));
  EXPECT_EQ(request.done[0].run, again.run);
  EXPECT_EQ(request.done[0].restore_epoch, RestoreEpoch(2));
  EXPECT_EQ(request.done[0].metrics.records, 4u) << "of the run over everything";
  EXPECT_THAT(Exchange(Reply()).done, SizeIs(1));
}

/// Two partitions have lost a part each, of different minibatches.
TEST_F(WorkerCoreTest, AMinibatchThatLeavesOutALostPartWhenItRunsAgainIsNamed) {
  ShardRun shard = GrantAndTake(7, Token(1));
  for (uint32_t m = 0; m < 3; ++m) Commit(shard, m);
  AnswerAll(PartCode::kOk);
  EXPECT_EQ(core_.CompleteShard(Token(1), shard.run, {}), "");
  WorkerExchangeReply reply = Reply();
  reply.map = RestoredMap(2, {0, 1});
  Exchange(reply);
  for (const SendRequest& question : core_.Flush(now_)) {
    const uint32_t partition = question.batch->plan.parts[question.items[0].part].partition.value();
    const bool lost = question.push->minibatch == MinibatchIndex(partition + 1);
    Answer(question, lost ? PartCode::kMissing : PartCode::kOk);
  }
  ShardRun again = *core_.TakeShard();
  ASSERT_THAT(again.minibatches, ElementsAre(MinibatchIndex(1), MinibatchIndex(2)));
  const auto all_but_1 = BatchOf([](uint32_t p) { return p != 1; });
  core_.CommitMinibatch(Token(1), again.run, MinibatchIndex(1), all_but_1, now_);
  core_.CommitMinibatch(Token(1), again.run, MinibatchIndex(2), all_but_1, now_);
  AnswerAll(PartCode::kOk);
  EXPECT_THAT(
      core_.CompleteShard(Token(1), again.run, {}),
      AllOf(HasSubstr("/0/7: minibatch 2 "), HasSubstr("partition 1,"), Not(HasSubstr("like it"))));
  EXPECT_THAT(Exchange(Reply()).done, SizeIs(1)) << "the last run counts";
}

TEST_F(WorkerCoreTest, ARestoreOfOtherPartitionsAsksNobody) {
  ShardRun shard = GrantAndTake(7, Token(1));
  core_.CommitMinibatch(Token(1), shard.run, MinibatchIndex(0),
                        BatchOf([](uint32_t p) { return p == 1; }), now_);
  AnswerAll(PartCode::kOk);
  Complete(shard);
  WorkerExchangeReply reply = Reply();
  reply.map = RestoredMap(2, {0});
  Exchange(reply);
  EXPECT_THAT(core_.Flush(now_), IsEmpty());
  const WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.done, SizeIs(1));
  EXPECT_EQ(request.done[0].restore_epoch, RestoreEpoch(2));
  EXPECT_EQ(request.done[0].run, shard.run);
}

TEST_F(WorkerCoreTest, ALateOkOfBeforeARestoreDoesNotCount) {
  ShardRun shard = GrantAndTake(7, Token(1));
  Commit(shard, 0);
  const std::vector<SendRequest> old = core_.Flush(now_);
  Complete(shard);
  WorkerExchangeReply reply = Reply();
  reply.map = RestoredMap(2, {0, 1, 2, 3, 4, 5, 6, 7});
  Exchange(reply);
  for (const SendRequest& request : old) Answer(request, PartCode::kOk);
  EXPECT_THAT(Exchange(Reply()).done, IsEmpty());
  AnswerAll(PartCode::kOk);
  EXPECT_THAT(Exchange(Reply()).done, SizeIs(1));
}

TEST_F(WorkerCoreTest, AnOkThatWasAskedForUnderAnOlderMapIsAskedForAgain) {
  ShardRun shard = GrantAndTake(7, Token(1));
  Commit(shard, 0);
  AnswerAll(PartCode::kOk);
  // In the middle of the loop.
  WorkerExchangeReply reply = Reply();
  reply.map = RestoredMap(2, {0});
  Exchange(reply);
  Commit(shard, 1);
  AnswerAll(PartCode::kOk);
  Complete(shard);
  const std::vector<SendRequest> questions = core_.Flush(now_);
  ASSERT_THAT(questions, SizeIs(1));
  EXPECT_EQ(questions[0].push->minibatch, MinibatchIndex(0));
  EXPECT_THAT(Exchange(Reply()).done, IsEmpty());
  Answer(questions[0], PartCode::kOk);
  EXPECT_THAT(Exchange(Reply()).done, SizeIs(1));
}

TEST_F(WorkerCoreTest, LostStaleAndRefusedLeasesAreDropped) {
  ShardRun lost = GrantAndTake(1, Token(1));
  Commit(lost, 0);
  WorkerExchangeReply reply = Reply();
  reply.lost = {Token(1)};
  Exchange(reply);
  EXPECT_FALSE(core_.StartMinibatch(Token(1), lost.run));
  EXPECT_FALSE(Commit(lost, 1));
  EXPECT_EQ(core_.outstanding_pushes(), 0u);
  EXPECT_THAT(core_.Flush(now_), IsEmpty());

  ShardRun stale = GrantAndTake(2, Token(2));
  Commit(stale, 0);
  AnswerAll(PartCode::kStaleLease);
  EXPECT_FALSE(core_.Holds(Token(2), stale.run));

  ShardRun refused = GrantAndTake(3, Token(3));
  Complete(refused);
  reply = Reply();
  reply.verdicts = {Verdict(refused, DoneCode::kRefused)};
  Exchange(reply);
  EXPECT_FALSE(core_.Holds(Token(3), refused.run));
  EXPECT_THAT(Exchange(Reply()).held, IsEmpty());
}

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

TEST_F(WorkerCoreTest, GivenUpShardsAreToldUntilAnswered) {
  ShardRun shard = GrantAndTake(1, Token(1));
  core_.GiveUp(Token(1), shard.run, ShardFailure{"NaN in table t"});
  core_.BeginExchange({}, now_);
  core_.OnExchangeFailed(now_);
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_EQ(request.returned[0].failure, "NaN in table t");
  EXPECT_THAT(request.held, IsEmpty());
  EXPECT_THAT(Exchange(Reply()).returned, IsEmpty());
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
  EXPECT_EQ(request.returned[1].shortage, "no descriptors");
  EXPECT_EQ(request.returned[1].failure, std::nullopt);
  EXPECT_EQ(request.returned[2].hand_back, HandBack::kLeaving);
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
  EXPECT_EQ(request.returned[0].failure, std::nullopt);
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

TEST_F(WorkerCoreTest, EndDropsEverythingAndStopsCalling) {
  ShardRun shard = GrantAndTake(1, Token(1));
  WorkerExchangeReply reply = Reply();
  reply.directive = JobDirective::kEnd;
  Exchange(reply);
  EXPECT_TRUE(core_.ended());
  EXPECT_FALSE(core_.Holds(Token(1), shard.run));
  EXPECT_EQ(core_.NextExchange(now_), TimePoint::max());
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

TEST_F(WorkerCoreTest, ABadRequestFailsTheShardOrThePull) {
  ShardRun shard = GrantAndTake(1, Token(1));
  Commit(shard, 0);
  Answer(core_.Flush(now_)[1], PartCode::kBadRequest, "table 1 has 4 columns");
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_THAT(*request.returned[0].failure, HasSubstr("table 1 has 4 columns"));
  EXPECT_EQ(core_.failure(), "");
  core_.StartPull(BatchOfAllPartitions(), now_);
  Answer(core_.Flush(now_)[0], PartCode::kBadRequest, "no table 1");
  EXPECT_THAT(core_.failure(), HasSubstr("no table 1"));
}

TEST_F(WorkerCoreTest, AFrameThatIsCalledMalformedForGoodFailsTheShardOrThePull) {
  ShardRun shard = GrantAndTake(1, Token(1));
  const auto refuse = [&](std::string_view text) {
    for (uint32_t i = 0; i < PartSender::kRefusalsMax; ++i) {
      for (const SendRequest& request : core_.Flush(now_)) core_.OnRefused(request, text, now_);
      now_ += PartSender::kBackoffMax * 5 / 4;
    }
  };
  Commit(shard, 0);
  core_.OnRefused(core_.Flush(now_)[0], "a damaged frame, once", now_);
  EXPECT_TRUE(core_.Holds(Token(1), shard.run));
  refuse("2000 groups, at most 1024 are taken");
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_THAT(*request.returned[0].failure, HasSubstr("2000 groups"));
  EXPECT_EQ(core_.failure(), "");
  core_.StartPull(BatchOfAllPartitions(), now_);
  refuse("3000 groups");
  EXPECT_THAT(core_.failure(), HasSubstr("refused a pull of this worker: 3000 groups"));
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
  EXPECT_EQ(request.returned[0].failure, std::nullopt);
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

TEST_F(WorkerCoreTest, DelaysEndWhenEveryPartIsAcknowledged) {
  const ShardRun shard = GrantAndTake(3, Token(1));
  core_.StartMinibatch(shard.grant.token, shard.run);
  core_.CommitMinibatch(shard.grant.token, shard.run, MinibatchIndex(0), BatchOfAllPartitions(),
                        now_, {now_ - milliseconds(100), now_ - milliseconds(1'000)});
  EXPECT_TRUE(Exchange(Reply()).delays.empty()) << "nothing is applied yet";
  now_ += milliseconds(500);
  AnswerAll(PartCode::kOk);
  const WorkerExchangeRequest request = Exchange(Reply());
  DelayHistogram expected;
  expected.Add(milliseconds(610));  // the exchange took 10
  expected.Add(milliseconds(1'510));
  EXPECT_EQ(request.delays, (std::vector<DatasetDelays>{{DatasetId(0), expected}}));
  EXPECT_EQ(Exchange(Reply()).delays, request.delays) << "running totals";
}

}  // namespace
}  // namespace muster::sdk
