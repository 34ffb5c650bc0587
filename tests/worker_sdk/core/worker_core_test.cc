#include <tuple>

#include "tests/worker_sdk/core/worker_core_fixture.h"

namespace muster::sdk {
namespace worker_core_test {

TEST_F(WorkerCoreTest, DoneIsReportedWhenEveryPartIsOkAndUntilTheVerdictCame) {
  ShardRun shard = GrantAndTake(7, Token(1));
  EXPECT_TRUE(Commit(shard, 0));
  SendRequests first = core_.Flush(now_);
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_EQ(first[0].push->step, 100u);
  EXPECT_TRUE(Commit(shard, 1));
  const SendRequests second = core_.Flush(now_);
  ASSERT_THAT(second, SizeIs(2));
  EXPECT_EQ(second[0].push->step, 101u);
  for (const SendRequest& request : second) Answer(request, PartCode::kOk);
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
  const SendRequests questions = core_.Flush(now_);
  ASSERT_THAT(questions, SizeIs(3)) << "one for each minibatch, to the restored partition alone";
  for (const SendRequest& question : questions) {
    ASSERT_THAT(question.items, SizeIs(1));
    EXPECT_EQ(question.keys, 0u);
    EXPECT_EQ(question.items[0].epoch, OwnerEpoch(2));
    const bool lost = question.push->minibatch == MinibatchIndex(1);
    Answer(question, lost ? PartCode::kMissing : PartCode::kOk);
  }
  EXPECT_THAT(Exchange(Reply()).done, IsEmpty());
  EXPECT_FALSE(core_.Holds(Token(1), shard.run));
  const HeldLease queued = Exchange(Reply()).held[0];
  EXPECT_EQ(queued.phase, LeasePhase::kQueued);
  EXPECT_EQ(queued.minibatches_started, 0u) << "of this run";
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

TEST_F(WorkerCoreTest, OfManyMinibatchesThatLeftOutALostPartTheFirstIsNamedAndTheRestCounted) {
  const ShardRun shard = GrantAndTake(7, Token(1));
  for (uint32_t m = 0; m < 4; ++m) Commit(shard, m);
  AnswerAll(PartCode::kOk);
  Complete(shard);
  WorkerExchangeReply reply = Reply();
  reply.map = RestoredMap(2, {5});
  Exchange(reply);
  AnswerAll(PartCode::kMissing);
  const ShardRun again = *core_.TakeShard();
  ASSERT_THAT(again.minibatches, SizeIs(4));
  Commit(again, 0);
  EXPECT_THAT(core_.CompleteShard(Token(1), again.run, {}),
              AllOf(HasSubstr(": minibatch 1 "), HasSubstr("partition 5,"),
                    HasSubstr("(and 2 more like it)")));
}

TEST_F(WorkerCoreTest, AfterARestoreALongShardAsksInPieces) {
  const ShardRun shard = GrantAndTake(7, Token(1));
  const auto batch = BatchOf([](uint32_t p) { return p == 0; });
  for (uint32_t m = 0; m < 1'100; ++m) {
    ASSERT_TRUE(core_.CommitMinibatch(Token(1), shard.run, MinibatchIndex(m), batch, now_));
  }
  AnswerAll(PartCode::kOk);
  Complete(shard);
  WorkerExchangeReply reply = Reply();
  reply.map = RestoredMap(2, {0});
  Exchange(reply);
  SendRequests questions = core_.Flush(now_);
  EXPECT_THAT(questions, SizeIs(1'024));
  for (const SendRequest& question : questions) Answer(question, PartCode::kOk);
  EXPECT_THAT(Exchange(Reply()).done, IsEmpty());
  questions = core_.Flush(now_);
  ASSERT_THAT(questions, SizeIs(76));
  EXPECT_EQ(questions.back().push->minibatch, MinibatchIndex(1'099));
  for (const SendRequest& question : questions) Answer(question, PartCode::kOk);
  EXPECT_THAT(Exchange(Reply()).done, SizeIs(1));
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
  const SendRequests old = core_.Flush(now_);
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
  const SendRequests questions = core_.Flush(now_);
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
  const SendRequests pushes = core_.Flush(now_);
  Answer(pushes[0], PartCode::kStaleLease);
  EXPECT_FALSE(core_.Holds(Token(2), stale.run));
  EXPECT_EQ(core_.outstanding_pushes(), 0u);
  Answer(pushes[1], PartCode::kOk);  // late: there is nothing to count it for

  ShardRun refused = GrantAndTake(3, Token(3));
  Complete(refused);
  reply = Reply();
  reply.verdicts = {Verdict(refused, DoneCode::kRefused)};
  Exchange(reply);
  EXPECT_FALSE(core_.Holds(Token(3), refused.run));
  EXPECT_THAT(Exchange(Reply()).held, IsEmpty());
}

TEST_F(WorkerCoreTest, ABadRequestFailsTheShardOrThePull) {
  ShardRun shard = GrantAndTake(1, Token(1));
  Commit(shard, 0);
  Answer(core_.Flush(now_)[1], PartCode::kBadRequest, "table 1 has 4 columns");
  WorkerExchangeRequest request = Exchange(Reply());
  ASSERT_THAT(request.returned, SizeIs(1));
  EXPECT_THAT(request.returned[0].reason, HasSubstr("table 1 has 4 columns"));
  EXPECT_EQ(core_.failure(), "");
  EXPECT_THAT(request.returned[0].reason, HasSubstr("ps-1 refused a push of this worker: "));
  EXPECT_FALSE(core_.Holds(Token(1), shard.run));
  core_.StartPull(BatchOfAllPartitions(), now_);
  const SendRequests pulls = core_.Flush(now_);
  Answer(pulls[0], PartCode::kBadRequest, "no table 1");
  Answer(pulls[1], PartCode::kBadRequest, "what comes of it");
  EXPECT_THAT(core_.failure(), HasSubstr("ps-0 refused a pull of this worker: no table 1"));
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
  EXPECT_THAT(request.returned[0].reason, HasSubstr("2000 groups"));
  EXPECT_EQ(core_.failure(), "");
  core_.StartPull(BatchOfAllPartitions(), now_);
  refuse("3000 groups");
  EXPECT_THAT(core_.failure(), HasSubstr("refused a pull of this worker: 3000 groups"));
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

TEST_F(WorkerCoreTest, LargeGradientsAreGatheredWhenNoneIsUnacknowledged) {
  const ShardRun shard = GrantAndTake(3, Token(1));
  const uint64_t floats = BatchOfAllPartitions()->plan.value_count;
  EXPECT_TRUE(core_.MayGather(10 * kHeldFloatsMax, core_.next_delivery())) << "one always goes";
  Commit(shard, 0);
  EXPECT_TRUE(core_.MayGather(kHeldFloatsMax - floats, core_.next_delivery()));
  EXPECT_FALSE(core_.MayGather(kHeldFloatsMax - floats + 1, core_.next_delivery()));
  Commit(shard, 1);
  EXPECT_FALSE(core_.MayGather(kHeldFloatsMax - floats, core_.next_delivery()));
  AnswerAll(PartCode::kOk);
  EXPECT_TRUE(core_.MayGather(10 * kHeldFloatsMax, core_.next_delivery()));
}

TEST_F(WorkerCoreTest, LargeGradientsDoNotWaitForWhatWasPushedLater) {
  const ShardRun shard = GrantAndTake(3, Token(1));
  Commit(shard, 0);
  const DeliveryId since = core_.next_delivery();
  EXPECT_FALSE(core_.MayGather(kHeldFloatsMax, since));
  AnswerAll(PartCode::kOk);
  Commit(shard, 1);
  EXPECT_FALSE(core_.MayGather(kHeldFloatsMax, core_.next_delivery()));
  EXPECT_TRUE(core_.MayGather(kHeldFloatsMax, since));
}

TEST_F(WorkerCoreTest, AMinibatchWithoutRowsCountsAtOnce) {
  const ShardRun shard = GrantAndTake(3, Token(1));
  EXPECT_TRUE(core_.CommitMinibatch(Token(1), shard.run, MinibatchIndex(0),
                                    std::make_shared<RowBatch>(), now_, {now_ - milliseconds(40)}));
  EXPECT_EQ(core_.outstanding_pushes(), 0u);
  Complete(shard);
  const WorkerExchangeRequest request = Exchange(Reply());
  DelayHistogram expected;
  expected.Add(milliseconds(40));
  EXPECT_EQ(request.delays, (std::vector<DatasetDelays>{{DatasetId(0), expected}}));
  EXPECT_THAT(request.done, SizeIs(1));
}

TEST_F(WorkerCoreTest, AVerdictSaysHowNewTheMapMustBe) {
  ShardRun shard = GrantAndTake(3, Token(1));
  Commit(shard, 0);
  AnswerAll(PartCode::kOk);
  WorkerExchangeReply reply = Reply();
  reply.verdicts = {Verdict(shard, DoneCode::kAccepted)};
  Exchange(reply);
  EXPECT_TRUE(core_.Holds(Token(1), shard.run)) << "its loop still runs: no done was told";
  Complete(shard);
  for (const uint64_t restore : {4u, 3u}) {  // an older one changes nothing
    reply.verdicts = {Verdict(shard, DoneCode::kReverify, restore)};
    Exchange(reply);
  }
  reply = Reply();
  reply.map = MapOf(3, 3);
  Exchange(reply);
  EXPECT_THAT(Exchange(Reply()).done, IsEmpty()) << "nothing is known of R 4";
  reply.map = MapOf(4, 4);
  Exchange(reply);
  const std::vector<DoneReport> done = Exchange(Reply()).done;
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].restore_epoch, RestoreEpoch(4));
}

/// Rule 13.2: what may be published was computed from weights that have every push.
TEST_F(WorkerCoreTest, ARunHasSeenAllPushesUntilAMapNamesALaterRestoreThanItsLease) {
  WorkerExchangeReply reply = Reply();
  reply.grants = {Grant(7, Token(1), /*restore=*/2), Grant(8, Token(2), /*restore=*/3)};
  Exchange(reply);
  const ShardRun early = *core_.TakeShard();
  const ShardRun late = *core_.TakeShard();
  const auto saw = [this](const ShardRun& shard) {
    return core_.SawAllPushes(shard.grant.token, shard.run);
  };
  EXPECT_TRUE(saw(early)) << "it has pulled nothing: no map names an owner";
  // The newest restore of which this worker knows, and whether the runs may be published.
  const std::tuple<uint64_t, bool, bool> maps[] = {
      {1, true, true}, {2, true, true}, {3, false, true}, {4, false, false}};
  for (const auto& [restore, early_may, late_may] : maps) {
    SCOPED_TRACE(restore);
    reply = Reply();
    reply.map = RestoredMap(restore, {0});
    Exchange(reply);
    EXPECT_EQ(saw(early), early_may);
    EXPECT_EQ(saw(late), late_may);
    EXPECT_TRUE(core_.Holds(early.grant.token, early.run)) << "a lease alone is not enough";
  }
}

TEST_F(WorkerCoreTest, ARunHasNotSeenAllPushesWithoutItsLease) {
  const ShardRun shard = GrantAndTake(7, Token(1));
  EXPECT_TRUE(core_.SawAllPushes(Token(1), shard.run));
  EXPECT_FALSE(core_.SawAllPushes(Token(1), shard.run.Next()));
  EXPECT_FALSE(core_.SawAllPushes(Token(2), shard.run));
  core_.BeginStepRun(RunNumber(9));  // Holds is true of a step, which has no lease
  EXPECT_FALSE(core_.SawAllPushes(Token(2), RunNumber(9)));
  WorkerExchangeReply reply = Reply();
  reply.lost = {Token(1)};
  Exchange(reply);
  EXPECT_FALSE(core_.SawAllPushes(Token(1), shard.run));
}

TEST_F(WorkerCoreTest, AShardThatTrainsNothingIsDoneWithoutAMap) {
  WorkerExchangeReply reply = Reply();
  for (const uint64_t index : {1u, 2u}) reply.grants.push_back(Grant(index, Token(index), 5));
  reply.grants[1].work.mode = DatasetMode::kEvaluate;
  Exchange(reply);
  const ShardRun train = *core_.TakeShard(), evaluate = *core_.TakeShard();
  Complete(train);
  Complete(evaluate);
  const std::vector<DoneReport> done = Exchange(Reply()).done;
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].token, Token(2));
  EXPECT_EQ(done[0].restore_epoch, RestoreEpoch(5));
}

class PushedBeforeTest : public WorkerCoreTest {
 protected:
  /// Every part is in the rows already.
  void AnswerSkipped() {
    for (const SendRequest& request : core_.Flush(now_)) {
      std::vector<wire::PartReply> replies(request.items.size());
      for (auto& reply : replies) reply.skipped = true;
      core_.OnReply(request, replies, {}, "", now_);
    }
  }
  uint64_t MinibatchesAgain() {
    const WorkerExchangeRequest request = Exchange(Reply());
    EXPECT_THAT(request.done, SizeIs(1));
    return request.done.empty() ? 99 : request.done[0].metrics.minibatches_again;
  }
};

TEST_F(PushedBeforeTest, MinibatchesThatAnEarlierLeaseHasPushedAreCounted) {
  const ShardRun shard = GrantAndTake(0, Token(2));
  Commit(shard, 0);
  AnswerSkipped();
  Commit(shard, 1);
  AnswerAll(PartCode::kOk);
  Complete(shard);
  EXPECT_EQ(MinibatchesAgain(), 1u);
}

TEST_F(PushedBeforeTest, APartThatIsSentAgainWithoutAnAnswerIsNone) {
  const ShardRun shard = GrantAndTake(0, Token(2));
  Commit(shard, 0);
  for (const SendRequest& request : core_.Flush(now_)) core_.OnUnanswered(request.id, now_);
  now_ += std::chrono::seconds(1);
  AnswerSkipped();
  Commit(shard, 1);
  AnswerAll(PartCode::kOk);
  Complete(shard);
  EXPECT_EQ(MinibatchesAgain(), 0u);
}

TEST_F(PushedBeforeTest, ARefusalIsNoSending) {
  const ShardRun shard = GrantAndTake(0, Token(2));
  Commit(shard, 0);
  AnswerAll(PartCode::kRetry);
  now_ += std::chrono::seconds(1);
  AnswerSkipped();
  Commit(shard, 1);
  AnswerAll(PartCode::kOk);
  Complete(shard);
  EXPECT_EQ(MinibatchesAgain(), 1u);
}

TEST_F(WorkerCoreTest, ShardsThatComeSoonAreToldOnce) {
  const auto starts = [&](size_t most) {
    std::vector<std::string> names;
    for (const ShardWork& work : core_.TakeSoon(most)) names.push_back(work.dataset_name);
    return names;
  };
  WorkerExchangeReply reply = Reply();
  for (uint64_t i = 1; i <= 4; ++i) {
    reply.grants.push_back(Grant(static_cast<uint32_t>(i), Token(i)));
    reply.grants.back().work.dataset_name = fmt::format("d{}", i);
  }
  Exchange(reply);
  EXPECT_THAT(starts(2), ElementsAre("d1", "d2"));
  EXPECT_THAT(starts(2), IsEmpty());
  core_.TakeShard();
  EXPECT_THAT(starts(2), ElementsAre("d3"));
  EXPECT_THAT(starts(9), ElementsAre("d4"));
}

}  // namespace worker_core_test
}  // namespace muster::sdk
