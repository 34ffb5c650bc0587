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
      EXPECT_THAT(lost, ElementsAre(grants[1].token)) << "a loop continues without them";
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
  Done(Want(5).grants);
  Hello("worker-9", 9);  // keeps the grace up
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

TEST_F(LeasesTest, NobodyReportsOrEndsTheLeaseOfAnother) {
  Start();
  const auto grants = Want(2).grants;
  Want(0, grants);
  const auto done = [&](const std::string& name, uint64_t incarnation, const ShardId& shard,
                        LeaseToken token) {
    WorkerExchangeRequest request = Request(name, incarnation);
    if (name == "worker-0") Hold(grants, &request);
    request.done.push_back({shard, token, grants[0].restore_epoch, {}, {}});
    return Exchange(request).verdicts.at(0).code;
  };
  EXPECT_EQ(done("worker-1", 8, grants[0].shard, grants[0].token), DoneCode::kRefused);
  EXPECT_EQ(done("worker-0", 8, grants[0].shard, grants[0].token), DoneCode::kRefused)
      << "another process of this name";
  EXPECT_EQ(core->totals().refused_dones, 2u);
  WorkerExchangeRequest request = Request("worker-1", 8);
  Hold({grants[0]}, &request);
  EXPECT_THAT(Exchange(request).lost, ElementsAre(grants[0].token));
  request = Request("worker-1", 8);
  request.returned.push_back({grants[0].shard, grants[0].token, true, "bad", true});
  Exchange(request);
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_EQ(core->leases().size(), 2u);
  EXPECT_EQ(core->ledger().done_seq(), DoneSeq(0));
}

TEST_F(LeasesTest, ATokenIsOfOneShard) {
  Start();
  const auto grants = Want(2).grants;
  WorkerExchangeRequest request = Request();
  Hold(grants, &request);
  request.done.push_back({grants[1].shard, grants[0].token, grants[0].restore_epoch, {}, {}});
  request.returned.push_back({grants[0].shard, grants[1].token, true, "bad", true});
  EXPECT_EQ(Exchange(request).verdicts.at(0).code, DoneCode::kRefused);
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_EQ(core->leases().size(), 2u);
  request = Request();
  Hold(grants, &request);
  request.held[0].shard = grants[1].shard;
  EXPECT_THAT(Exchange(request).lost, ElementsAre(grants[0].token));
  request = Request();
  Hold(grants, &request);
  request.held[0].shard.index = ShardIndex(1'000'000);
  EXPECT_THAT(Exchange(request).lost, ElementsAre(grants[0].token)) << "there is no such shard";
}

TEST_F(LeasesTest, AReplySaysWhoAnswersAndWhenToCallAgain) {
  Start();
  Register(5);
  Register(6);
  const WorkerExchangeReply granted = Want(4);
  EXPECT_EQ(granted.master_incarnation, MasterIncarnation(1)) << "of a new journal";
  EXPECT_EQ(granted.heartbeat_interval, options.leases.heartbeat_interval);
  ASSERT_TRUE(granted.map.has_value());
  EXPECT_EQ(granted.map->partitions.at(0).restored_at, core->partitions().restore_epoch());
  ASSERT_THAT(granted.map->servers, SizeIs(1));
  EXPECT_EQ(granted.map->servers[0].incarnation, server);
  WorkerExchangeRequest request = Request("worker-1", 8);
  request.map_version = granted.map->version;
  const WorkerExchangeReply idle = Exchange(request);
  EXPECT_FALSE(idle.map.has_value()) << "it has this one";
  EXPECT_EQ(idle.heartbeat_interval, options.leases.heartbeat_interval);
  request = Request("worker-1", 8);
  request.want = 1;
  EXPECT_EQ(Exchange(request).heartbeat_interval, std::chrono::milliseconds(100))
      << "it waits for work";
}

TEST_F(LeasesTest, ACallThatArrivesTwiceIsAnsweredOnce) {
  Start();
  WorkerExchangeRequest request = Request();
  request.want = 1;
  EXPECT_THAT(Exchange(request).grants, SizeIs(1));
  EXPECT_THAT(Exchange(request).grants, IsEmpty());
  EXPECT_EQ(core->leases().size(), 1u);
}

TEST_F(LeasesTest, OneCallGetsSoManyShardsAndNoMore) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 10'005)};
  Start();
  const auto grants = Want(10'005).grants;
  EXPECT_THAT(grants, SizeIs(10'000));
  EXPECT_THAT(Want(10'005, grants).grants, SizeIs(5));
}

// Minibatches that a restore has undone run again in another run.
TEST_F(LeasesTest, MinibatchesOfLaterRunsAreRedelivered) {
  Start();
  const auto grants = Want(1).grants;
  const auto beat = [&](uint32_t run, uint32_t minibatches) {
    WorkerExchangeRequest request = Request();
    Hold(grants, &request);
    request.held[0].run = RunNumber(run);
    request.held[0].minibatches_started = minibatches;
    Exchange(request);
    return core->totals().redelivered_minibatches;
  };
  EXPECT_EQ(beat(0, 2), 0u);
  EXPECT_EQ(beat(1, 1), 1u);
  EXPECT_EQ(beat(1, 1), 1u);
  EXPECT_EQ(beat(1, 3), 3u);
  EXPECT_EQ(beat(2, 2), 5u) << "all of another run";
  Exchange(Request());  // has seen the grant no more: nothing is known of it
  WorkerExchangeRequest lost = Request();
  lost.newest_grant = grants[0].token;
  Exchange(lost);
  EXPECT_EQ(core->totals().redelivered_minibatches, 7u) << "its shard starts again";
}

TEST_F(LeasesTest, AVerifyThatIsAskedForIsProgress) {
  options.leases.max_age = seconds(30);
  Start();
  Register(1);
  const auto grants = Want(1).grants;
  const auto beat = [&](int for_seconds) {
    std::vector<LeaseToken> lost;
    for (int i = 0; i < for_seconds; i += 5) {
      Advance(seconds(5));
      lost = Want(0, grants).lost;
    }
    return lost;
  };
  Want(0, grants);
  EXPECT_THAT(beat(25), IsEmpty());
  Register(2);
  EXPECT_THAT(Done(grants), ElementsAre(DoneCode::kReverify));
  EXPECT_THAT(beat(25), IsEmpty());
  EXPECT_THAT(beat(5), ElementsAre(grants[0].token));
  EXPECT_EQ(EventOf("lease-expired"),
            "worker-0: no progress for 30000 ms (spec.leases.maxAge) on 1 shard, 0/0/0 first");
  EXPECT_EQ(core->totals().expired_leases, 1u);
}

TEST_F(LeasesTest, WhatWaitsBehindADoneShardIsNotStuck) {
  options.leases.max_age = seconds(30);
  Start();
  const auto grants = Want(2).grants;
  const auto beat = [&](bool first) {
    WorkerExchangeRequest request = Request();
    Hold(grants, &request);
    request.held[1].phase = LeasePhase::kQueued;
    request.held[1].minibatches_started = 0;
    if (!first) request.held.erase(request.held.begin());
    return Exchange(request).lost;
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(beat(true), IsEmpty());
    Advance(seconds(5));
  }
  WorkerExchangeRequest done = Request();
  Hold(grants, &done);
  done.held[1].phase = LeasePhase::kQueued;
  done.held[1].minibatches_started = 0;
  done.done.push_back({grants[0].shard, grants[0].token, grants[0].restore_epoch, {}, {}});
  Exchange(done);
  for (int i = 0; i < 5; ++i) {
    Advance(seconds(5));
    EXPECT_THAT(beat(false), IsEmpty());
  }
  Advance(seconds(5));
  EXPECT_THAT(beat(false), ElementsAre(grants[1].token));
}

TEST_F(LeasesTest, TheMastersOwnPauseMakesNoLeaseOlder) {
  options.leases.max_age = seconds(30);
  Start();
  Want(0, Want(2).grants);
  StandStill(seconds(60));
  EXPECT_EQ(core->leases().size(), 2u);
}

TEST_F(LeasesTest, WorkersAreLostAndComeBackAndServersHaveTheirOwnTime) {
  options.leases.duration = seconds(2);
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 20)};
  Start();
  Register(5);
  Hello("worker-0", 7);
  Hello("worker-0", 7);
  Hello("worker-1", 8);
  EXPECT_EQ(EventCount("worker-joined"), 2u) << "one process joins once";
  NodeReport report{.node = "worker-1", .role = NodeRole::kWorker};
  report.what = NodeReport::What::kExited;
  core->ReportNode(report, At());
  Want(2);
  EXPECT_FALSE(HasEvent("node-back"));
  Advance(std::chrono::milliseconds(1'500));
  EXPECT_FALSE(HasEvent("node-lost"));
  Advance(std::chrono::milliseconds(500));
  EXPECT_EQ(EventOf("node-lost"), "worker-0: no heartbeat for 2000 ms; 2 leases expired")
      << "who has ended is not lost";
  EXPECT_EQ(core->nodes().nodes().at("worker-1").record.state, NodeState::kExited);
  EXPECT_EQ(core->nodes().nodes().at("ps-0").record.state, NodeState::kRunning);
  Exchange(Request());
  EXPECT_EQ(EventOf("node-back"), "worker-0: its heartbeat is back");
  EXPECT_EQ(core->nodes().nodes().at("worker-0").record.state, NodeState::kRunning);
}

TEST_F(LeasesTest, AProcessThatOnlySaidHelloIsReplacedToo) {
  Start();
  Hello("worker-0", 7);
  Hello("worker-0", 8);
  EXPECT_FALSE(core->ExchangeWorker(Request("worker-0", 7), At()).ok());
  EXPECT_TRUE(core->ExchangeWorker(Request("worker-0", 8), At()).ok());
}

TEST_F(LeasesTest, ANameIsOfOneRole) {
  Start();
  Register(5);
  EXPECT_THAT(core->HelloWorker({"ps-0", 7}, StartNumber(0), At()),
              testing::StatusIs(absl::StatusCode::kResourceExhausted,
                                ::testing::HasSubstr("a ps already has this name")));
  Exchange(Request("ps-0", 7));
  EXPECT_FALSE(ExchangeServer(ServerRequest()).unknown_incarnation) << "the server is who it was";
  options.servers = 2;
  Restart();
  Hello("ps-1", 7);
  EXPECT_THAT(core->RegisterServer({"ps-1", 9, {}}, At()),
              testing::StatusIs(absl::StatusCode::kResourceExhausted,
                                ::testing::HasSubstr("another node has this name")));
}

TEST_F(LeasesTest, AShortageIsToldOnceUntilAShardIsFinished) {
  Start();
  const auto told = [&] { return EventCount("shard-handed-back"); };
  HandBackOne(HandBack::kShortage);
  HandBackOne(HandBack::kShortage);
  EXPECT_EQ(told(), 1u);
  HandBackOne(HandBack::kUncharged);
  EXPECT_EQ(told(), 1u);
  Done(Want(1).grants);
  HandBackOne(HandBack::kShortage);
  EXPECT_EQ(told(), 2u);
}

TEST_F(LeasesTest, AProcessThatOnlyCallsIsJournaledAndIsTheNodesProcess) {
  Start();
  Exchange(Request("worker-0", 7));
  EXPECT_EQ(journal.state().nodes.at("worker-0").incarnation, 7u);
  EXPECT_EQ(journal.state().nodes.at("worker-0").state, NodeState::kRunning);
  Exchange(Request("worker-0", 8));
  EXPECT_EQ(journal.state().nodes.at("worker-0").incarnation, 8u);
}

TEST_F(LeasesTest, AWorkerIsSilentAnewAfterItWasHeard) {
  Start();
  for (uint64_t times = 1; times <= 2; ++times) {
    ASSERT_THAT(Want(1).grants, SizeIs(1));
    Advance(options.leases.duration);
    EXPECT_EQ(core->leases().size(), 0u);
    EXPECT_EQ(core->totals().expired_leases, times);
  }
}

TEST_F(LeasesTest, ATimeInWhichNothingIsGrantedIsNoAgeOfWhatIsGrantedLater) {
  options.leases.max_age = seconds(30);
  Start();
  for (int i = 0; i < 10; ++i) {
    Want(0);
    Advance(seconds(5));
  }
  ASSERT_THAT(Want(1).grants, SizeIs(1));
  Advance(std::chrono::milliseconds(50));
  EXPECT_EQ(core->leases().size(), 1u);
}

}  // namespace
}  // namespace muster
