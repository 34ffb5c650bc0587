#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using testing::CoreFixture;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;
using testing::StatusIs;

using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkersTest : public ::testing::Test, protected CoreFixture {
 protected:
  /// Leases live 30 s without progress; worker-0 computes both shards that it holds.
  std::vector<ShardGrant> StartWithTwo() {
    options.leases.max_age = seconds(30);
    Start();
    const std::vector<ShardGrant> grants = Want(2).grants;
    held_request = Request();
    Hold(grants, &held_request);
    return grants;
  }
  /// Says `held_request` as the next heartbeat.
  WorkerExchangeReply Beat() {
    held_request.sequence = ++sequence;
    return Exchange(held_request);
  }

  WorkerExchangeRequest held_request;
};

TEST_F(WorkersTest, GrantsInBatchesWithRisingTokensAndAMap) {
  Start();
  const WorkerExchangeReply reply = Want(3);
  ASSERT_THAT(reply.grants, SizeIs(3));
  EXPECT_LT(reply.grants[0].token, reply.grants[1].token);
  EXPECT_EQ(reply.grants[2].shard.index, ShardIndex(2));
  ASSERT_TRUE(reply.map.has_value());
  EXPECT_EQ(reply.map->restore_epoch, reply.grants[0].restore_epoch);
  EXPECT_EQ(reply.directive, JobDirective::kWork);
}

TEST_F(WorkersTest, ALostAnswerIsGrantedAgainUnderTheSameToken) {
  Start();
  const auto first = Want(2).grants;
  const auto again = Want(1).grants;  // newest_grant shows that the answer never came
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].token, first[0].token);
  EXPECT_EQ(core->leases().size(), 1u) << "what is not wanted any more goes back";
}

TEST_F(WorkersTest, AHeldLeaseThatIsNotListedHasEnded) {
  Start();
  const auto grants = Want(2).grants;
  WorkerExchangeRequest request = Request();
  Hold({grants[1]}, &request);
  Exchange(request);
  EXPECT_EQ(core->leases().size(), 1u);
  EXPECT_EQ(core->ledger().queue().StateOf(grants[0].shard), ShardState::kTodo);
}

TEST_F(WorkersTest, AnOvertakenCallSaysNothingAboutWhatIsHeld) {
  Start();
  const WorkerExchangeRequest old = Request();
  const auto grants = Want(2).grants;
  Want(0, grants);
  WorkerExchangeRequest late = old;
  late.newest_grant = grants[1].token;
  late.want = 2;
  EXPECT_THAT(Exchange(late).grants, IsEmpty());
  EXPECT_EQ(core->leases().size(), 2u);
}

TEST_F(WorkersTest, DoneIsIdempotentAndRefusedToOthers) {
  Start();
  const auto grants = Want(1).grants;
  EXPECT_THAT(Done(grants), ElementsAre(DoneCode::kAccepted));
  EXPECT_THAT(Done(grants), ElementsAre(DoneCode::kAccepted));
  EXPECT_EQ(core->ledger().done_seq(), DoneSeq(1));
  ShardGrant forged = grants[0];
  forged.token = LeaseToken(core->incarnation(), 999);
  EXPECT_THAT(Done({forged}), ElementsAre(DoneCode::kRefused));
  forged.shard.index = ShardIndex(1'000'000);
  EXPECT_THAT(Done({forged}), ElementsAre(DoneCode::kRefused));
}

TEST_F(WorkersTest, AnExpiredLeaseIsRefusedAndRunsElsewhere) {
  Start();
  const auto grants = Want(1).grants;
  Advance(options.leases.duration);
  EXPECT_EQ(core->leases().size(), 0u);
  EXPECT_EQ(core->totals().expired_leases, 1u);
  EXPECT_TRUE(HasEvent("node-lost"));
  EXPECT_THAT(Done(grants), ElementsAre(DoneCode::kRefused));
  WorkerExchangeRequest other = Request("worker-1", 8);
  other.want = 1;
  const auto regranted = Exchange(other).grants;
  ASSERT_THAT(regranted, SizeIs(1));
  EXPECT_EQ(regranted[0].shard, grants[0].shard);
  EXPECT_GT(regranted[0].token, grants[0].token);
}

TEST_F(WorkersTest, HeartbeatsAloneDoNotKeepALeaseForEver) {
  const auto grants = StartWithTwo();
  held_request.held[1].phase = LeasePhase::kQueued;
  held_request.held[1].minibatches_started = 0;
  EXPECT_THAT(Beat().lost, IsEmpty());
  for (int i = 0; i < 5; ++i) {
    Advance(seconds(5));
    EXPECT_THAT(Beat().lost, IsEmpty());
  }
  Advance(seconds(5));
  EXPECT_THAT(Beat().lost, ElementsAre(grants[0].token, grants[1].token));
  EXPECT_TRUE(HasEvent("lease-expired"));
}

TEST_F(WorkersTest, AShardMayTakeLongAsLongAsItGoesOn) {
  StartWithTwo();
  held_request.held[1].phase = LeasePhase::kQueued;
  for (uint32_t beat = 2; beat < 20; ++beat) {
    Advance(seconds(9));
    held_request.held[0].minibatches_started = beat / 2;
    EXPECT_THAT(Beat().lost, IsEmpty()) << "neither it nor what waits behind it";
  }
}

TEST_F(WorkersTest, OneStuckShardOfABusyWorkerExpiresAlone) {
  const auto grants = StartWithTwo();
  Beat();
  for (uint32_t minibatch = 2; minibatch < 5; ++minibatch) {
    Advance(seconds(9));
    held_request.held[0].minibatches_started = minibatch;
    EXPECT_THAT(Beat().lost, IsEmpty());
  }
  Advance(seconds(9));
  EXPECT_THAT(Beat().lost, ElementsAre(grants[1].token));
}

TEST_F(WorkersTest, AWorkerThatHangsWhileTheMasterRestartsIsLostToo) {
  Start();
  Hello("worker-0", 7);
  Sync();
  Restart();
  Advance(options.leases.duration);
  EXPECT_EQ(core->nodes().nodes().at("worker-0").record.state, NodeState::kLost);
  EXPECT_TRUE(HasEvent("node-lost"));
}

TEST_F(WorkersTest, TheMastersOwnPauseIsNobodysSilence) {
  Start();
  Hello("worker-0", 7);
  Register(1);
  const auto grants = Want(2).grants;
  StandStill(2 * options.leases.duration);
  EXPECT_EQ(core->leases().size(), 2u);
  EXPECT_FALSE(HasEvent("node-lost"));
  Advance(options.leases.duration);
  EXPECT_EQ(core->leases().size(), 0u) << "but the time after it counts";
}

TEST_F(WorkersTest, AFailureToldAgainAfterARestartIsChargedOnce) {
  options.leases.failures_max = 3;
  Start();
  const auto grants = Want(1).grants;
  WorkerExchangeRequest request = Request();
  request.newest_grant = grants[0].token;
  request.returned.push_back({grants[0].shard, grants[0].token, true, "a bad record", false});
  for (int i = 0; i < 4; ++i) {
    request.sequence = ++sequence;
    Exchange(request);
    Restart();
  }
  EXPECT_EQ(core->ledger().FindFailure(grants[0].shard)->failures, 1u);
  EXPECT_EQ(core->ledger().queue().StateOf(grants[0].shard), ShardState::kTodo);
}

TEST_F(WorkersTest, ReassertsAfterARestart) {
  Start();
  Register(1);
  Hello("worker-0", 7);
  const auto grants = Want(2).grants;
  Restart();
  EXPECT_TRUE(core->in_grace_period());
  EXPECT_THAT(Want(5, {grants[0]}).grants, IsEmpty()) << "nothing is granted meanwhile";
  EXPECT_EQ(core->totals().reasserted_leases, 1u);
  EXPECT_THAT(Done({grants[0]}), ElementsAre(DoneCode::kAccepted));
  EXPECT_THAT(Done({grants[1]}), ElementsAre(DoneCode::kAccepted)) << "the done re-asserts, too";
  Advance(milliseconds(50));
  EXPECT_FALSE(core->in_grace_period()) << "everybody who ran has been heard";
}

TEST_F(WorkersTest, TheHighestTokenWinsAndLateReassertionsAreLost) {
  Start();
  Hello("worker-9", 99);  // keeps the grace up
  const auto old = Want(1).grants;
  Advance(options.leases.duration);
  WorkerExchangeRequest other = Request("worker-1", 8);
  other.want = 1;
  const auto newer = Exchange(other).grants;
  Restart();
  WorkerExchangeRequest reassert = Request("worker-1", 8);
  Hold(newer, &reassert);
  EXPECT_THAT(Exchange(reassert).lost, IsEmpty());
  EXPECT_THAT(Want(0, old).lost, ElementsAre(old[0].token));
  Restart();
  EXPECT_THAT(Want(0, old).lost, IsEmpty()) << "alone, the older token holds";
  reassert.sequence = ++sequence;
  EXPECT_THAT(Exchange(reassert).lost, IsEmpty());
  EXPECT_THAT(Want(0, old).lost, ElementsAre(old[0].token)) << "until the newer one comes";
  Restart();
  Advance(options.leases.grace_period);
  EXPECT_THAT(Want(0, old).lost, ElementsAre(old[0].token));
}

TEST_F(WorkersTest, ANewProcessOfANodeEndsTheLeasesOfTheOldOne) {
  Start();
  Hello("worker-0", 7);
  const auto grants = Want(1).grants;
  Hello("worker-0", 8);
  EXPECT_EQ(core->leases().size(), 0u);
  WorkerExchangeRequest old = Request();
  Hold(grants, &old);
  EXPECT_THAT(core->ExchangeWorker(old, At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("now has this name")));
}

TEST_F(WorkersTest, ALateHelloOfADeadProcessIsRefused) {
  Start();
  Hello("worker-0", 7, 2);
  const auto grants = Want(1).grants;
  const auto late = [&] { return core->HelloWorker({"worker-0", 6}, StartNumber(1), At()); };
  EXPECT_THAT(late(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("knows start 2 of this node already")));
  EXPECT_EQ(core->leases().size(), 1u);
  Restart();
  Want(0, grants);
  EXPECT_THAT(late(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("start 1")))
      << "the journal remembers it";
  EXPECT_THAT(core->ExchangeWorker(Request("worker-0", 6), At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("now has this name")));
  EXPECT_EQ(core->leases().size(), 1u);
  Hello("worker-0", 9, 3);
  EXPECT_EQ(core->leases().size(), 0u);
  options.run_id = "run-2";
  Restart();
  EXPECT_THAT(core->HelloWorker({"worker-0", 5}, StartNumber(1), At()), testing::IsOk())
      << "another run counts from 0 again";
}

TEST_F(WorkersTest, ReverifiesAfterARestoreAndOnlyThen) {
  Start();
  Register(1);
  auto grants = Want(2).grants;
  Register(2);  // another process: R grows
  EXPECT_THAT(Done({grants[0]}), ElementsAre(DoneCode::kReverify));
  EXPECT_THAT(Done({grants[0]}), ElementsAre(DoneCode::kReverify));
  EXPECT_EQ(core->totals().reverified_runs, 1u) << "a repeat is not counted";
  grants[0].restore_epoch = core->partitions().restore_epoch();
  EXPECT_THAT(Done({grants[0]}), ElementsAre(DoneCode::kAccepted));
}

TEST_F(WorkersTest, EvaluateShardsAreNeverReverified) {
  options.datasets.push_back(testing::PlanFor("test", DatasetMode::kEvaluate, 1, 1));
  Start();
  Register(1);
  const auto train = Want(5).grants;
  ASSERT_THAT(train, SizeIs(4));
  Done(train);
  const auto evaluate = Want(5).grants;
  ASSERT_THAT(evaluate, SizeIs(1));
  EXPECT_EQ(core->leases().OldestTrain(), std::nullopt) << "it holds no floor";
  ASSERT_EQ(Snapshot(), 2u);
  Register(2);  // R grows, but nothing of the training is replayed
  EXPECT_THAT(Done(evaluate), ElementsAre(DoneCode::kAccepted));
  EXPECT_THAT(Done(evaluate), ElementsAre(DoneCode::kAccepted)) << "the answer was lost";
  EXPECT_EQ(core->ledger().RecordsCommitted(DatasetId(1), EpochIndex(0)), 0u);
  ASSERT_EQ(Snapshot(), 2u);
  EXPECT_EQ(core->ledger().Metrics(DatasetId(1), EpochIndex(0))->records, 10u);
  EXPECT_EQ(core->ledger().RecordsCommitted(DatasetId(1), EpochIndex(0)), 10u);
}

TEST_F(WorkersTest, AnEvaluationDuringWhichItsTrainingIsReplayedBeginsAgain) {
  options.datasets.push_back(testing::PlanFor("test", DatasetMode::kEvaluate, 1, 2));
  Start();
  Register(1);
  Done(Want(5).grants);
  const auto evaluate = Want(1).grants;
  ASSERT_THAT(evaluate, SizeIs(1));
  Register(2);  // nothing was snapshotted: everything is replayed
  EXPECT_THAT(EventOf("partitions-restored"), HasSubstr("1 evaluate shard begins again"));
  EXPECT_THAT(Want(0, evaluate).lost, ElementsAre(evaluate[0].token));
  EXPECT_THAT(Done(evaluate), ElementsAre(DoneCode::kRefused))
      << "it may have seen the weights without what is replayed";
  const auto train = Want(5).grants;
  EXPECT_THAT(train, SizeIs(4)) << "the evaluation waits for the replay";
  Done(train);
  const auto again = Want(5).grants;
  EXPECT_THAT(again, SizeIs(2));
  EXPECT_THAT(Done(again), ElementsAre(DoneCode::kAccepted, DoneCode::kAccepted));
  Snapshot();
  EXPECT_EQ(core->ledger().Metrics(DatasetId(1), EpochIndex(0))->records, 20u);
}

TEST_F(WorkersTest, AnEvaluationOfBeforeARestoreIsNotReasserted) {
  options.datasets.push_back(testing::PlanFor("test", DatasetMode::kEvaluate, 1, 1));
  Start();
  Register(1);
  Hello("worker-0", 7);
  Done(Want(5).grants);
  const auto evaluate = Want(1).grants;
  ASSERT_THAT(evaluate, SizeIs(1));
  Restart();
  Register(2);
  EXPECT_THAT(Want(0, evaluate).lost, ElementsAre(evaluate[0].token));
  EXPECT_THAT(Done(evaluate), ElementsAre(DoneCode::kRefused));
}

TEST_F(WorkersTest, FailuresAreChargedUntilTheShardIsFailed) {
  options.leases.failures_max = 2;
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 1)};
  Start();
  for (int i = 0; i < 2; ++i) {
    const auto grants = Want(1).grants;
    ASSERT_THAT(grants, SizeIs(1));
    WorkerExchangeRequest request = Request();
    request.newest_grant = grants[0].token;
    request.returned.push_back({grants[0].shard, grants[0].token, true, "loss is NaN", false});
    Exchange(request);
    Exchange(request);  // a repeat charges nothing
  }
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("1 shard FAILED"));
  EXPECT_THAT(core->reason(), HasSubstr("0/0/0 of dataset 'train': worker-0: loss is NaN"));
  EXPECT_EQ(Want(1).directive, JobDirective::kEnd);
  Restart();
  EXPECT_EQ(core->state(), JobState::kFailed);
  options.run_id = "run-2";
  options.retry_failed = true;
  Restart();
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_THAT(Want(1).grants, SizeIs(1));
}

TEST_F(WorkersTest, ATrainerThatLeavesEveryShardEarlyFailsThem) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 1)};
  options.leases.failures_max = 2;
  Start();
  int hand_backs = 0;
  for (; hand_backs < 1'000 && core->state() == JobState::kRunning; ++hand_backs) HandBackOne();
  EXPECT_EQ(core->state(), JobState::kFailed) << "after " << hand_backs << " hand-backs";
  EXPECT_EQ(hand_backs, 1 + 2 * 3) << "the first one came further than any before";
  EXPECT_THAT(core->reason(), HasSubstr("handed back 3 times without progress"));
  EXPECT_TRUE(HasEvent("shard-failure"));
}

TEST_F(WorkersTest, HandBacksThatAreNotTheTrainersAreChargedToNobody) {
  Start();
  for (int i = 0; i < 20; ++i) {
    HandBackOne(HandBack::kUncharged);
    HandBackOne(HandBack::kShortage);
  }
  // A drain that the worker has not heard of yet.
  Hello("worker-0", 7);
  const auto grants = Want(1).grants;
  ASSERT_TRUE(core->DrainNode("worker-0", std::chrono::seconds(30), At()).ok());
  WorkerExchangeRequest request = Request();
  request.returned.push_back(
      {grants[0].shard, grants[0].token, false, "", false, HandBack::kByTrainer, 1});
  Exchange(request);
  EXPECT_TRUE(core->ledger().failures().empty());
  EXPECT_EQ(core->leases().size(), 0u);
  EXPECT_THAT(EventOf("shard-handed-back"), HasSubstr("too many open files"));
}

TEST_F(WorkersTest, AHandBackToldAgainAfterARestartIsCountedOnce) {
  Start();
  const auto grants = Want(1).grants;
  WorkerExchangeRequest request = Request();
  request.newest_grant = grants[0].token;
  request.returned.push_back(
      {grants[0].shard, grants[0].token, false, "", false, HandBack::kByTrainer, 0});
  Restart();
  for (int i = 0; i < 4; ++i) {
    request.sequence = ++sequence;
    Exchange(request);
  }
  EXPECT_TRUE(core->ledger().failures().empty());
}

TEST_F(WorkersTest, AFatalFailureEndsTheJob) {
  Start();
  const auto grants = Want(1).grants;
  WorkerExchangeRequest request = Request();
  request.returned.push_back(
      {grants[0].shard, grants[0].token, true, "train.csv has changed", true});
  EXPECT_EQ(Exchange(request).directive, JobDirective::kEnd);
  EXPECT_THAT(core->reason(), HasSubstr("train.csv has changed"));
}

TEST_F(WorkersTest, TooManyRejectedRecordsFailTheJob) {
  options.rejected_records_max = 1;
  Start();
  const auto grants = Want(2).grants;
  WorkerExchangeRequest request = Request();
  Hold(grants, &request);
  for (const ShardGrant& grant : grants) {
    DoneReport done{grant.shard, grant.token, grant.restore_epoch, {}, {}};
    done.metrics.rejected_records = 1;
    done.metrics.reject_samples = {fmt::format("train.csv:{}: not a number", request.done.size())};
    request.done.push_back(done);
  }
  Exchange(request);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), ::testing::AllOf(HasSubstr("rejectedRecordsMax is 1"),
                                               HasSubstr("train.csv:1: not a number")));
  std::vector<std::string> told;
  for (const auto& [sequence, event] : core->events().events()) {
    if (event.kind == "record-rejected") told.push_back(event.node + " " + event.text);
  }
  EXPECT_THAT(told, ElementsAre("worker-0 train.csv:0: not a number",
                                "worker-0 train.csv:1: not a number"));
}

TEST_F(WorkersTest, RejectedRecordsOfAReplayedShardCountOnce) {
  options.rejected_records_max = 1;
  Start();
  Register(5);
  for (const uint64_t nonce : {6, 7}) {
    const auto grants = Want(1).grants;
    ASSERT_THAT(grants, SizeIs(1));
    WorkerExchangeRequest request = Request();
    Hold(grants, &request);
    DoneReport done{grants[0].shard, grants[0].token, grants[0].restore_epoch, {}, {}};
    done.metrics.rejected_records = 1;
    request.done.push_back(done);
    Exchange(request);
    EXPECT_EQ(core->ledger().rejected_records(), 1u);
    Register(nonce);  // another process: the shard is replayed
    EXPECT_EQ(core->ledger().rejected_records(), 0u);
  }
  EXPECT_EQ(core->totals().replayed_shards, 2u);
  EXPECT_EQ(core->state(), JobState::kRunning) << core->reason();
}

TEST_F(WorkersTest, AnOvertakenCallDoesNotTurnTheTotalsBack) {
  Start();
  Hello("worker-0", 7, 1);
  WorkerExchangeRequest older = Request(), newer = Request();
  older.times.minibatches_begun = 3;
  newer.times.minibatches_begun = 5;
  const WorkerTimes& times = core->nodes().nodes().at("worker-0").times;
  Exchange(newer);
  Exchange(older);
  EXPECT_EQ(times.minibatches_begun, 5u);
  Hello("worker-0", 8, 2);
  EXPECT_EQ(times, WorkerTimes()) << "another process begins at zero";
}

TEST_F(WorkersTest, WhatWorkersSawOfAServerIsSummed) {
  options.servers = 2;
  Start();
  Register(5, 1);
  const auto tell = [&](const std::string& worker, uint64_t incarnation, PeerTimes peer) {
    WorkerExchangeRequest request = Request(worker, incarnation);
    peer.server = ServerId(1);
    if (peer.incarnation == ServerIncarnation()) peer.incarnation = server;
    request.peers.push_back(peer);
    request.peers.push_back({ServerId(9), server, 1, 1, 1, 1});  // no such server
    Exchange(request);
  };
  const PeerTimes& seen = core->nodes().nodes().at("ps-1").peers;
  tell("worker-0", 7, {.pulls = 10, .pull_us = 100, .pushes = 5, .push_us = 70});
  tell("worker-1", 8, {.pulls = 1, .pull_us = 30});
  EXPECT_EQ(seen, (PeerTimes{{}, {}, 11, 130, 5, 70}));
  tell("worker-0", 7, {.pulls = 12, .pull_us = 120, .pushes = 4, .push_us = 70});
  EXPECT_EQ(seen, (PeerTimes{{}, {}, 13, 150, 5, 70})) << "what grew is added, nothing shrinks";
  tell("worker-0", 7, {.incarnation = ServerIncarnation(99), .pulls = 1'000});
  EXPECT_EQ(seen.pulls, 13u) << "of another process";
  Register(6, 1);
  EXPECT_EQ(seen, PeerTimes());
  tell("worker-0", 7, {.pulls = 2, .pull_us = 9});
  EXPECT_EQ(seen, (PeerTimes{{}, {}, 2, 9, 0, 0}));
}

}  // namespace
}  // namespace muster
