/// Restarts of the master, new runs, and the ends of jobs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RunsTest : public ::testing::Test, protected testing::CoreFixture {
 protected:
  /// A server that serves everything and snapshots whenever something is DONE.
  void StartServed() {
    options.snapshot_interval = seconds(0);
    Start();
    Register(5);
    ExchangeServer(ServerRequest());
  }
  void NewRun(const std::string& id) {
    options.run_id = id;
    Restart();
  }
  void Fail(const std::vector<ShardGrant>& grants) {
    WorkerExchangeRequest request = Request();
    for (const ShardGrant& grant : grants) {
      request.returned.push_back({grant.shard, grant.token, true, "bad", false});
    }
    Exchange(request);
  }
  /// One shard is done with so many rejected records, of which some are shown.
  void DoneWithRejects(const ShardGrant& grant, uint64_t rejected,
                       std::vector<std::string> samples) {
    WorkerExchangeRequest request = Request();
    Hold({grant}, &request);
    DoneReport done{grant.shard, grant.token, grant.restore_epoch, {}, {}};
    done.metrics.rejected_records = rejected;
    done.metrics.reject_samples = std::move(samples);
    request.done.push_back(done);
    Exchange(request);
  }
};

TEST_F(RunsTest, ARestartedMasterGoesOnWithTheJobsDrainAndItsTime) {
  Start();
  Done(Want(1).grants);  // which no server will ever snapshot
  core->Drain(At());
  Sync();
  Advance(options.drain_timeout);
  Restart();
  EXPECT_EQ(core->state(), JobState::kDraining);
  Advance(2 * options.drain_timeout - milliseconds(500));
  EXPECT_EQ(core->state(), JobState::kDraining) << "its time starts again";
  Advance(milliseconds(500));
  EXPECT_EQ(core->state(), JobState::kDrained);
}

TEST_F(RunsTest, WhoSendsNoHeartbeatsIsNotSilentAfterARestart) {
  Start();
  for (const auto& [name, role] :
       {std::pair("master", NodeRole::kMaster), std::pair("scaler", NodeRole::kScaler)}) {
    core->ReportNode({.node = name, .role = role}, At());
  }
  Hello("worker-0", 7);
  Restart();
  const auto heard = [&](const char* name) {
    return core->nodes().nodes().at(name).last_heard.has_value();
  };
  EXPECT_TRUE(heard("worker-0"));
  EXPECT_FALSE(heard("master"));
  EXPECT_FALSE(heard("scaler"));
}

TEST_F(RunsTest, TheJobsTimeGoesOnOverRestartsAndRuns) {
  const auto start = [&](const std::string& run, int at_s) {
    options.run_id = run;
    core = std::make_unique<MasterCore>(options, journal.TakeState(),
                                        StepTime{now, WallTime(seconds(at_s))});
    Sync();
  };
  const auto running = [&](int at_s) { return core->RunningFor({now, WallTime(seconds(at_s))}); };
  start("run-1", 1'000);
  EXPECT_EQ(running(1'060), seconds(60));
  start("run-1", 1'100);
  EXPECT_EQ(running(1'160), seconds(160)) << "a restart of the master";
  // The restart is the last that was heard of it.
  start("run-2", 9'000);
  EXPECT_EQ(running(9'010), seconds(110));
  ASSERT_THAT(core->Cancel({}, {now, WallTime(seconds(9'020))}), testing::IsOk());
  EXPECT_EQ(running(9'500), seconds(120)) << "it is over";
  Sync();
  const MasterCore found(options, journal.TakeState(), MasterCore::AsFound{});
  EXPECT_EQ(found.RunningFor({}), seconds(120));
}

TEST_F(RunsTest, ADrainedJobStaysDrainedWhenItsMasterRestarts) {
  Start();
  const std::vector<ShardGrant> grants = Want(1).grants;
  core->Drain(At());
  Fail(grants);
  ASSERT_EQ(core->state(), JobState::kDrained);
  Restart();
  EXPECT_EQ(core->state(), JobState::kDrained);
  EXPECT_THAT(Want(1).grants, IsEmpty());
  EXPECT_THAT(core->DrainNode("worker-0", seconds(1), At()).status(),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("drained")));
  NewRun("run-2");
  EXPECT_EQ(core->state(), JobState::kRunning) << "`muster run` resumes it";
}

TEST_F(RunsTest, FailedShardsAreTriedAgainByANewRunThatAsksForIt) {
  options.leases.failures_max = 1;
  Start();
  Fail(Want(1).grants);
  const auto failed = [&] { return core->ledger().queue().failed_count(); };
  ASSERT_EQ(failed(), 1u);
  options.retry_failed = true;
  Restart();
  EXPECT_EQ(failed(), 1u) << "the same run has tried it";
  options.retry_failed = false;
  NewRun("run-2");
  EXPECT_EQ(failed(), 1u);
  options.retry_failed = true;
  NewRun("run-3");
  EXPECT_EQ(failed(), 0u);
}

TEST_F(RunsTest, ANewRunOfAJobThatIsDoneEndsAtOnce) {
  StartServed();
  Done(Want(4).grants);
  Snapshot();
  ASSERT_EQ(core->state(), JobState::kSucceeded);
  NewRun("run-2");
  EXPECT_EQ(core->state(), JobState::kSucceeded);
  EXPECT_TRUE(core->new_run());
  Restart();
  EXPECT_FALSE(core->new_run());
}

TEST_F(RunsTest, ALowerLimitOfRejectedRecordsIsSeenWhenTheMasterBegins) {
  options.rejected_records_max = 2;
  StartServed();
  DoneWithRejects(Want(1).grants.at(0), 2, {});
  Snapshot();
  EXPECT_EQ(core->state(), JobState::kRunning) << "as many as may be";
  options.rejected_records_max = 1;
  NewRun("run-2");
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(
      core->reason(),
      HasSubstr("2 records were rejected, but spec.training.rejectedRecordsMax is 1. To continue"));
}

TEST_F(RunsTest, RejectedRecordsAreShownUpToABound) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 11)};
  options.rejected_records_max = 1'000;
  Start();
  std::vector<std::string> samples;
  for (int i = 0; i < 10; ++i) samples.push_back(fmt::format("train.csv:{}: bad", i));
  for (int i = 0; i < 11; ++i) DoneWithRejects(Want(1).grants.at(0), 10, samples);
  EXPECT_EQ(EventCount("record-rejected"), 100u);
  EXPECT_THAT(EventOf("record-rejected"),
              EndsWith("9: bad (more rejected records are only counted)"));
  EXPECT_EQ(core->ledger().rejected_records(), 110u);
}

TEST_F(RunsTest, ARestoreTellsWhatItMeans) {
  StartServed();
  EXPECT_EQ(EventOf("partitions-restored"),
            ": a new run began: 2 partitions start without a snapshot, 0 DONE shards run again "
            "(restore epoch 1)");
  Done(Want(1).grants);
  Snapshot();
  Done(Want(1).grants);
  Register(6);
  EXPECT_EQ(EventOf("partitions-restored"),
            ": another process took the place of ps-0: 2 partitions are restored from their "
            "snapshots, 1 DONE shard runs again (restore epoch 2)");
}

TEST_F(RunsTest, AReplayEndsTheEvaluationsOfItsEpochsAndNoEarlierOnes) {
  options.evaluation = Evaluation::kOverlapping;
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 2, 1),
                      testing::PlanFor("test", DatasetMode::kEvaluate, 1, 3)};
  StartServed();
  const auto first = Want(1).grants;
  Done(first);
  Snapshot();
  std::vector<ShardGrant> held = Want(4).grants;  // pass 0, and epoch 1 of the training
  ASSERT_THAT(held, SizeIs(4));
  const ShardGrant trained = held.back();
  ASSERT_EQ(trained.shard.dataset, DatasetId(0));
  WorkerExchangeRequest request = Request();
  Hold(held, &request);
  request.done.push_back({trained.shard, trained.token, trained.restore_epoch, {}, {}});
  Exchange(request);
  held.pop_back();
  for (const ShardGrant& grant : Want(3, held).grants) held.push_back(grant);  // pass 1
  ASSERT_THAT(held, SizeIs(6));
  Register(6);  // epoch 1 is replayed
  EXPECT_THAT(EventOf("partitions-restored"), HasSubstr("3 evaluate shards begin again"));
  EXPECT_THAT(Want(0, held).lost, ElementsAre(held[3].token, held[4].token, held[5].token));
}

TEST_F(RunsTest, WhatWasMeasuredOnWeightsThatAreLostIsMeasuredAgain) {
  options.datasets.push_back(testing::PlanFor("test", DatasetMode::kEvaluate, 1, 1));
  Start();
  Register(1);
  Done(Want(5).grants);
  EXPECT_THAT(Done(Want(5).grants), ElementsAre(DoneCode::kAccepted));
  Register(2);  // nothing was snapshotted: everything is replayed
  EXPECT_THAT(EventOf("partitions-restored"), HasSubstr("5 DONE shards run again"));
  const auto train = Want(5).grants;
  EXPECT_THAT(train, SizeIs(4)) << "the evaluation waits for the replay";
  Done(train);
  EXPECT_THAT(Done(Want(5).grants), ElementsAre(DoneCode::kAccepted));
  Snapshot();
  EXPECT_EQ(core->ledger().Metrics(DatasetId(1), EpochIndex(0))->records, 10u);
  EXPECT_EQ(core->state(), JobState::kSucceeded);
}

TEST_F(RunsTest, CommittedRecordsAreCountedForTheWorkerThatTrainedThem) {
  options.datasets.push_back(testing::PlanFor("test", DatasetMode::kEvaluate, 1, 1));
  StartServed();
  Hello("worker-0", 7);
  const auto committed = [&] {
    return core->nodes().nodes().at("worker-0").record.records_committed;
  };
  Done(Want(4).grants);
  EXPECT_EQ(committed(), 0u) << "DONE may have to run again";
  Snapshot();
  EXPECT_EQ(committed(), 40u);
  EXPECT_EQ(journal.state().nodes.at("worker-0").records_committed, 40u);
  EXPECT_EQ(EventOf("epoch-committed"), ": epoch 1 of dataset 'train': 4 shards, 40 records");
  Done(Want(1).grants);
  EXPECT_EQ(committed(), 40u) << "an evaluation is final when its training is";
  Snapshot();
  EXPECT_EQ(committed(), 40u) << "only training counts, as in the job's progress";
  EXPECT_EQ(EventOf("epoch-committed"), ": epoch 1 of dataset 'test': 1 shard, 10 records");
  EXPECT_EQ(journal.state().nodes.at("worker-0").records_committed, 40u);
  EXPECT_EQ(core->state(), JobState::kSucceeded);
}

TEST_F(RunsTest, ServersCallOftenWhileTheJobWaitsForTheirSnapshots) {
  options.snapshot_interval = seconds(60);
  Start();
  Register(5);
  const auto asked = [&] { return ExchangeServer(ServerRequest()).snapshots.size(); };
  const auto interval = [&] { return ExchangeServer(ServerRequest()).heartbeat_interval; };
  EXPECT_EQ(interval(), options.server_times.heartbeat_interval);
  const auto grants = Want(4).grants;
  Done({grants[0]});  // and the others have ended
  EXPECT_EQ(interval(), options.server_times.heartbeat_interval) << "there is work to do";
  const auto rest = Want(4).grants;
  EXPECT_EQ(asked(), 0u) << "workers train";
  core->Drain(At());
  EXPECT_EQ(asked(), 0u) << "they finish what they hold";
  Done(rest);
  EXPECT_EQ(asked(), 2u);
  EXPECT_EQ(interval(), milliseconds(50));
}

// Counts alone are worth no sync; they ride with others, or wait for a second.
TEST_F(RunsTest, CountsReachTheJournalAfterASecond) {
  Start();
  const auto grants = Want(1).grants;
  Done(grants);
  ShardGrant forged = grants[0];
  forged.token = LeaseToken(core->incarnation(), 999);
  EXPECT_THAT(Done({forged}), ElementsAre(DoneCode::kRefused));
  EXPECT_EQ(journal.state().meta->totals.refused_dones, 0u);
  Advance(milliseconds(999));
  EXPECT_EQ(journal.state().meta->totals.refused_dones, 0u);
  Advance(milliseconds(1));
  EXPECT_EQ(journal.state().meta->totals.refused_dones, 1u);
  EXPECT_THAT(core->TakeMutations(), IsEmpty());
  Restart();
  EXPECT_EQ(core->totals().refused_dones, 1u);
  EXPECT_EQ(core->totals().master_restarts, 1u);
}

TEST_F(RunsTest, WhatWasCommittedBeforeARestartIsForgotten) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 1),
                      testing::PlanFor("test", DatasetMode::kEvaluate, 1, 2)};
  StartServed();
  Done(Want(1).grants);
  Snapshot();
  Done(Want(1).grants);  // an evaluation
  Restart();
  EXPECT_EQ(core->ledger().commit_seq(), DoneSeq(1));
  EXPECT_EQ(core->forget_state().version, 0u);
  Want(0);  // which is all that the grace period waits for
  Advance(milliseconds(50));
  IntervalSet first;
  first.Add(0);
  EXPECT_THAT(core->forget_state().epochs, ElementsAre(std::pair(DatasetId(0), first)));
  EXPECT_THAT(core->forget_state().shards, IsEmpty());
}

TEST_F(RunsTest, AJobThatFailedIsShownWithItsReason) {
  Start();
  ASSERT_THAT(core->Cancel({"a crash loop", true}, At()), testing::IsOk());
  Sync();
  const MasterCore found(options, journal.state(), MasterCore::AsFound{});
  EXPECT_EQ(found.state(), JobState::kFailed);
  EXPECT_EQ(found.reason(), "a crash loop");
  Restart();
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_EQ(core->reason(), "a crash loop") << "another master of the same run";
}

TEST_F(RunsTest, FailuresGoWhenTheirShardIsCommittedOrTriedAgain) {
  options.leases.failures_max = 2;
  StartServed();
  const auto one = Want(1).grants;
  Fail(one);
  const ShardId shard = one.at(0).shard;
  EXPECT_EQ(journal.state().failures.at(shard).failures, 1u);
  const auto others = Want(3).grants;
  EXPECT_NE(others.at(0).shard, shard) << "the others come first";
  Done(others);
  Fail(Want(1).grants);
  ASSERT_EQ(core->ledger().queue().StateOf(shard), ShardState::kFailed);
  EXPECT_TRUE(journal.state().failures.at(shard).failed);
  ASSERT_THAT(core->RetryShards({shard}, At()), testing::IsOk());
  Sync();
  EXPECT_FALSE(journal.state().failures.at(shard).failed);
  Fail(Want(1).grants);
  EXPECT_EQ(core->ledger().queue().StateOf(shard), ShardState::kTodo) << "it counts from 0 again";
  EXPECT_THAT(Done(Want(1).grants), ElementsAre(DoneCode::kAccepted));
  EXPECT_NE(core->ledger().FindFailure(shard), nullptr) << "DONE may have to run again";
  Snapshot();
  EXPECT_EQ(core->ledger().FindFailure(shard), nullptr);
  EXPECT_EQ(core->ledger().failure_bytes(), 0u);
  EXPECT_THAT(journal.state().failures, IsEmpty());
}

TEST_F(RunsTest, AFailureOfANodeIsJournaledAndChargedToNobody) {
  Start();
  const auto grants = Want(2).grants;
  WorkerExchangeRequest request = Request();
  Hold(grants, &request);
  request.held[0].phase = LeasePhase::kQueued;
  Exchange(request);
  Advance(options.leases.duration);
  const FailureRecord& failure = journal.state().failures.at(grants[1].shard);
  EXPECT_EQ(failure.node_failures, 1u);
  EXPECT_EQ(failure.failures, 0u);
  EXPECT_FALSE(journal.state().failures.contains(grants[0].shard)) << "it had not begun";
}

TEST_F(RunsTest, RecordsThatAnEvaluationRejectsCountToo) {
  options.datasets = {testing::PlanFor("test", DatasetMode::kEvaluate, 1, 2)};
  options.rejected_records_max = 5;
  Start();
  DoneWithRejects(Want(1).grants.at(0), 3, {});
  EXPECT_EQ(core->ledger().rejected_records(), 3u);
  Restart();
  EXPECT_EQ(core->ledger().rejected_records(), 3u);
}

TEST_F(RunsTest, RejectedRecordsOfDoneShardsAreKnownAfterARestart) {
  options.rejected_records_max = 5;
  Start();
  DoneWithRejects(Want(1).grants.at(0), 2, {});
  Restart();
  EXPECT_EQ(core->ledger().rejected_records(), 2u);
}

TEST_F(RunsTest, ADrainEndsAtOnceWhenNothingIsLeftToWaitFor) {
  options.snapshot_directory = "/snapshots";
  Start();
  core->Drain(At());
  EXPECT_EQ(core->state(), JobState::kDrained) << "nothing was begun";
  NewRun("run-2");
  Hello("worker-0", 7);
  Want(1);
  core->Drain(At());
  EXPECT_EQ(core->state(), JobState::kDraining);
  NodeReport report{.node = "worker-0", .role = NodeRole::kWorker};
  report.what = NodeReport::What::kExited;
  report.incarnation = 7;
  core->ReportNode(report, At());
  EXPECT_EQ(core->state(), JobState::kDrained) << "who held something has ended";
  NewRun("run-3");
  Hello("worker-0", 8);
  Want(1);
  core->Drain(At());
  Sync();
  Restart();
  EXPECT_EQ(core->state(), JobState::kDraining);
  Advance(options.leases.grace_period);
  EXPECT_EQ(core->state(), JobState::kDrained) << "no worker holds anything";
  EXPECT_EQ(journal.state().meta->snapshot_directory, "/snapshots");
}

TEST_F(RunsTest, ANewProcessOfAWorkerMayBeTheEndOfADrain) {
  Start();
  Hello("worker-0", 7);
  Want(1);
  core->Drain(At());
  EXPECT_EQ(core->state(), JobState::kDraining);
  Hello("worker-0", 8);  // what the one before held has ended
  EXPECT_EQ(core->state(), JobState::kDrained);
}

TEST_F(RunsTest, TheMastersOwnPauseIsNotOfTheGracePeriod) {
  Start();
  Hello("worker-9", 9);
  Restart();
  StandStill(3 * options.leases.grace_period);
  EXPECT_TRUE(core->in_grace_period());
  Advance(options.leases.grace_period);
  EXPECT_FALSE(core->in_grace_period());
}

TEST_F(RunsTest, TheGraceIsOverWhenWhoRanIsHeardOrDead) {
  Start();
  Hello("worker-0", 7);
  Hello("worker-1", 8);
  Restart();
  Exchange(Request());
  Advance(milliseconds(50));
  EXPECT_TRUE(core->in_grace_period()) << "worker-1 may hold something";
  NodeReport report{.node = "worker-1", .role = NodeRole::kWorker};
  report.what = NodeReport::What::kExited;
  core->ReportNode(report, At());
  Advance(milliseconds(50));
  EXPECT_FALSE(core->in_grace_period());
  EXPECT_THAT(EventOf("master-restarted"), HasSubstr("incarnation 2 continues from the journal: 0 "
                                                     "of 4 shards COMMITTED, 0 DONE"));
}

TEST_F(RunsTest, ADrainEndsWhatIsHeldAtItsTimeoutAndNotBefore) {
  Start();
  const auto grants = Want(2).grants;
  core->Drain(At());
  const TimePoint began = now;
  EXPECT_EQ(EventOf("drain-began"), ": 2 leases outstanding");
  while (now - began < options.drain_timeout - milliseconds(500)) {
    Want(0, grants);
    Advance(milliseconds(500));
    core->Drain(At());  // a repeat changes nothing
  }
  EXPECT_EQ(core->leases().size(), 2u);
  Advance(milliseconds(500));
  EXPECT_EQ(EventOf("drain-timeout"), ": 2 leases were ended; their shards run again on resume");
  EXPECT_EQ(core->state(), JobState::kDrained) << "nothing is DONE";
}

TEST_F(RunsTest, AJournalOfOtherDataOrPartitionsIsRefused) {
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  const auto grants = Want(2).grants;
  WorkerExchangeRequest request = Request();
  Hold(grants, &request);
  request.done.push_back({grants[1].shard, grants[1].token, grants[1].restore_epoch, {}, {}});
  Exchange(request);
  EXPECT_THAT(MasterCore::CheckFits(options, journal.state()), testing::IsOk());
  CoreOptions other = options;
  other.partitions = 3;
  EXPECT_THAT(MasterCore::CheckFits(other, journal.state()),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("has 2 partitions, but the job file 3")));
  EXPECT_THAT(MasterCore::CheckFits(other, DurableState()), testing::IsOk()) << "a new job";
  other = options;
  other.datasets[0].shards = 1;
  EXPECT_THAT(MasterCore::CheckFits(other, journal.state()),
              testing::StatusIs(absl::StatusCode::kDataLoss, HasSubstr("has shard 0/0/1, but")));
  other.datasets.clear();
  EXPECT_THAT(
      MasterCore::CheckFits(other, journal.state()),
      testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("dataset '#0' has 0 epochs in the job file, but epoch 1")));
}

}  // namespace
}  // namespace muster
