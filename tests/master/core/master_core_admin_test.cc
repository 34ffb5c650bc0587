#include <csignal>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::seconds;
using testing::CoreFixture;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::StatusIs;

class AdminTest : public ::testing::Test, protected CoreFixture {
 protected:
  NodeReport Exit(uint32_t signal, uint32_t code, LeaseToken computing) {
    NodeReport report;
    report.node = "worker-0";
    report.role = NodeRole::kWorker;
    report.pid = 100;
    report.what = NodeReport::What::kExited;
    report.signal = signal;
    report.exit_code = code;
    report.computing_token = computing;
    report.minibatches_started = 2;
    return report;
  }
};

TEST_F(AdminTest, ExitsAreChargedByTheirCause) {
  struct Row {
    uint32_t signal, code;
    bool charged;
  };
  for (const Row& row :
       {Row{SIGSEGV, 0, true}, Row{SIGABRT, 0, true}, Row{SIGFPE, 0, true}, Row{SIGKILL, 0, false},
        Row{SIGTERM, 0, false}, Row{0, 1, true}, Row{0, 0, true}, Row{0, 137, false},
        Row{0, 139, true}, Row{SIGBUS, 0, true}, Row{SIGILL, 0, true}, Row{SIGINT, 0, false},
        Row{SIGHUP, 0, false}, Row{SIGUSR1, 0, false}, Row{SIGUSR1, 1, false}, Row{0, 128, true},
        Row{0, 129, false}, Row{0, 134, true}}) {
    CoreFixture fixture;
    fixture.Start();
    const auto grants = fixture.Want(2).grants;
    fixture.Want(0, grants);
    fixture.core->ReportNode(Exit(row.signal, row.code, grants[1].token), fixture.At());
    EXPECT_EQ(fixture.core->leases().size(), 0u) << "the leases end at once";
    EXPECT_EQ(fixture.core->totals().redelivered_minibatches, 3u);
    const FailureRecord* failure = fixture.core->ledger().FindFailure(grants[1].shard);
    ASSERT_TRUE(failure != nullptr || row.charged == false || row.code == 0);
    EXPECT_EQ(failure == nullptr ? 0u : failure->failures, row.charged ? 1u : 0u)
        << "signal " << row.signal << " code " << row.code;
    const FailureRecord* other = fixture.core->ledger().FindFailure(grants[0].shard);
    EXPECT_EQ(other == nullptr ? 0u : other->failures, 0u) << "the computed shard alone";
  }
}

TEST_F(AdminTest, AnExitIsToldAsPeopleNameIt) {
  Start();
  struct Row {
    uint32_t signal, code;
    std::string text, shown;
  };
  uint64_t start = 0;
  for (const Row& row : {Row{0, 3, "", "exit 3"}, Row{SIGSEGV, 0, "", "SIGSEGV"},
                         Row{200, 0, "", "signal 200"}, Row{0, 0, "it left", "exit 0: it left"}}) {
    NodeReport report = Exit(row.signal, row.code, {});
    report.start = StartNumber(++start);
    report.text = row.text;
    core->ReportNode(report, At());
    EXPECT_EQ(EventOf("node-exited"), "worker-0: pid 100: " + row.shown);
  }
  NodeReport started = Exit(0, 0, {});
  started.what = NodeReport::What::kStarted;
  started.start = StartNumber(++start);
  started.text = "by hand";
  core->ReportNode(started, At());
  EXPECT_EQ(EventOf("node-started"), "worker-0: pid 100, restarts 4: by hand");
}

TEST_F(AdminTest, AChargeSaysHowTheProcessEnded) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 1)};
  Start();
  const auto reason = [&](uint32_t signal, uint32_t code, uint64_t start) {
    const auto grants = Want(1).grants;
    Want(0, grants);
    NodeReport report = Exit(signal, code, grants.at(0).token);
    report.minibatches_started = static_cast<uint32_t>(start - 1);
    report.start = StartNumber(start);
    core->ReportNode(report, At());
    return core->ledger().FindFailure(grants[0].shard)->reasons.back();
  };
  EXPECT_EQ(reason(SIGSEGV, 0, 1),
            "worker-0: crashed with signal 11, before the first minibatch of the shard");
  EXPECT_EQ(reason(0, 3, 2),
            "worker-0: exited with code 3, after minibatch 1 of 2 of the shard had begun");
  EXPECT_EQ(reason(0, 0, 3),
            "worker-0: exited with code 0 before the job's end, after minibatch 2 of 2 of the "
            "shard had begun");
  EXPECT_EQ(EventOf("shard-failed"),
            "worker-0: shard 0/0/0 of dataset 'train': failure 3 of 3, the shard is FAILED: exited "
            "with code 0 before the job's end, after minibatch 2 of 2 of the shard had begun");
}

TEST_F(AdminTest, WhatADeadProcessHeldEndsThoughItLeftNothingBehind) {
  Start();
  Hello("worker-0", 7, 2);
  const auto grants = Want(2).grants;
  ASSERT_THAT(grants, SizeIs(2));
  NodeReport report = Exit(SIGKILL, 0, {});
  report.start = StartNumber(1);
  core->ReportNode(report, At());
  EXPECT_EQ(core->leases().size(), 2u) << "of an earlier one";
  report.start = StartNumber(2);
  core->ReportNode(report, At());
  EXPECT_EQ(core->leases().size(), 0u);
}

TEST_F(AdminTest, ARepeatedReportChargesOnce) {
  Start();
  const auto grants = Want(1).grants;
  Want(0, grants);
  core->ReportNode(Exit(SIGSEGV, 0, grants[0].token), At());
  core->ReportNode(Exit(SIGSEGV, 0, grants[0].token), At());
  EXPECT_EQ(core->ledger().FindFailure(grants[0].shard)->failures, 1u);
}

TEST_F(AdminTest, TheOldestEndedLeasesAreForgottenFirst) {
  options.limits.ended_leases = 2;
  Start();
  const auto grants = Want(3).grants;
  ASSERT_THAT(grants, SizeIs(3));
  Hello("worker-0", 8);  // ends all three
  ASSERT_EQ(core->leases().size(), 0u);
  for (uint64_t i = 0; i < 3; ++i) {
    NodeReport report = Exit(SIGSEGV, 0, grants[i].token);
    report.start = StartNumber(i + 1);
    core->ReportNode(report, At());
  }
  const auto failures = [&](const ShardGrant& grant) {
    const FailureRecord* failure = core->ledger().FindFailure(grant.shard);
    return failure == nullptr ? 0u : failure->failures;
  };
  EXPECT_EQ(failures(grants[0]), 0u) << "its lease ended too long ago";
  EXPECT_EQ(failures(grants[1]), 1u);
  EXPECT_EQ(failures(grants[2]), 1u);
}

TEST_F(AdminTest, WhoTookOverTellsEverythingAgainAndChangesNothing) {
  Start();
  NodeReport started = Exit(0, 0, {});
  started.what = NodeReport::What::kStarted;
  core->ReportNode(started, At());
  Hello("worker-0", 7, 1);
  const auto grants = Want(1).grants;
  Want(0, grants);
  NodeReport exited = Exit(SIGSEGV, 0, grants[0].token);
  exited.incarnation = 7;
  core->ReportNode(exited, At());
  const uint64_t events = core->events().newest();
  core->ReportNode(started, At());
  core->ReportNode(exited, At());
  EXPECT_EQ(core->nodes().nodes().at("worker-0").record.state, NodeState::kExited);
  EXPECT_EQ(core->events().newest(), events);
  EXPECT_EQ(core->ledger().FindFailure(grants[0].shard)->failures, 1u);
}

TEST_F(AdminTest, AStartWithThePidOfTheOneBeforeIsAnotherProcess) {
  Start();
  for (uint64_t start = 1; start <= 2; ++start) {
    NodeReport report = Exit(SIGKILL, 0, {});  // in a container every process has the same pid
    report.start = StartNumber(start);
    report.what = NodeReport::What::kStarted;
    core->ReportNode(report, At());
    const NodeRecord& record = core->nodes().nodes().at("worker-0").record;
    EXPECT_EQ(record.state, NodeState::kStarting);
    EXPECT_EQ(EventCount("node-started"), start);
    report.what = NodeReport::What::kExited;
    core->ReportNode(report, At());
    EXPECT_EQ(record.state, NodeState::kExited);
    EXPECT_EQ(EventCount("node-exited"), start);
    EXPECT_EQ(RestartsOf(record), start - 1);
  }
}

TEST_F(AdminTest, AStartThatWasToldMakesAnEarlierProcessADeadOne) {
  Start();
  NodeReport started = Exit(0, 0, {});
  started.what = NodeReport::What::kStarted;
  started.start = StartNumber(3);
  core->ReportNode(started, At());
  started.start = StartNumber(2);
  core->ReportNode(started, At());
  EXPECT_EQ(core->nodes().nodes().at("worker-0").record.told_start, StartNumber(3));
  EXPECT_THAT(core->HelloWorker({"worker-0", 6}, StartNumber(2), At()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("knows start 3 of this node already; this is start 2")));
  Hello("worker-0", 7, 3);
}

TEST_F(AdminTest, AProcessThatWasStartedByHandMakesNobodyForgetTheStartsBeforeIt) {
  Start();
  Hello("worker-0", 7, 2);
  Hello("worker-0", 8);
  const auto late = [&] { return core->HelloWorker({"worker-0", 6}, StartNumber(1), At()); };
  EXPECT_THAT(late(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("knows start 2 of this node already")));
  Sync();
  Restart();
  EXPECT_THAT(late(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("start 2")));
  EXPECT_THAT(core->ExchangeWorker(Request("worker-0", 8), At()).status(), testing::IsOk());
}

TEST_F(AdminTest, MasterAndScalerRunWithoutRegistering) {
  Start();
  for (const NodeRole role : {NodeRole::kMaster, NodeRole::kScaler}) {
    NodeReport report;
    report.node = ToString(role);
    report.role = role;
    report.pid = 7;
    core->ReportNode(report, At());
    EXPECT_EQ(core->nodes().nodes().at(report.node).record.state, NodeState::kRunning);
    report.what = NodeReport::What::kExited;
    report.signal = SIGKILL;
    core->ReportNode(report, At());
    EXPECT_EQ(core->nodes().nodes().at(report.node).record.state, NodeState::kExited);
    report.what = NodeReport::What::kStarted;
    report.start = StartNumber(2);
    core->ReportNode(report, At());
    EXPECT_EQ(core->nodes().nodes().at(report.node).record.state, NodeState::kRunning);
    EXPECT_EQ(core->nodes().nodes().at(report.node).record.last_exit, "SIGKILL");
  }
}

TEST_F(AdminTest, ALateReportOfAReplacedProcessChargesButEndsNothing) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 20)};
  Start();
  Hello("worker-0", 7);
  const auto grants = Want(1).grants;
  Want(0, grants);
  Hello("worker-0", 8);
  WorkerExchangeRequest request = Request("worker-0", 8);
  request.want = 2;
  ASSERT_THAT(Exchange(request).grants, SizeIs(2));
  core->ReportNode(Exit(SIGSEGV, 0, grants[0].token), At());
  EXPECT_EQ(core->leases().size(), 2u);
}

TEST_F(AdminTest, ALateReportEndsTheLeasesOfItsOwnProcessOnly) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 20)};
  Start();
  NodeReport started = Exit(0, 0, {});
  started.what = NodeReport::What::kStarted;
  core->ReportNode(started, At());
  Hello("worker-0", 7, 1);
  Want(1);
  // The restarted process is faster than the report of the old one's end.
  Hello("worker-0", 8, 2);
  WorkerExchangeRequest request = Request("worker-0", 8);
  request.want = 2;
  ASSERT_THAT(Exchange(request).grants, SizeIs(2));
  NodeReport late = Exit(SIGKILL, 0, {});
  late.incarnation = 7;
  core->ReportNode(late, At());
  EXPECT_EQ(core->leases().size(), 2u);
  EXPECT_EQ(core->nodes().nodes().at("worker-0").record.state, NodeState::kRunning);
  EXPECT_TRUE(HasEvent("node-exited"));
  late.incarnation = 0;  // it died before it could leave a trace
  core->ReportNode(late, At());
  EXPECT_EQ(core->leases().size(), 2u) << "it was the first start, the living one is the second";
  late.start = StartNumber(2);
  late.incarnation = 8;
  core->ReportNode(late, At());
  EXPECT_EQ(core->leases().size(), 0u);
  EXPECT_EQ(RestartsOf(core->nodes().nodes().at("worker-0").record), 1u);
}

TEST_F(AdminTest, DrainsWhatIsHeldThenSnapshotsThenEnds) {
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  const auto grants = Want(1).grants;
  core->Drain(At());
  const WorkerExchangeReply reply = Want(3, grants);
  EXPECT_EQ(reply.directive, JobDirective::kDrain);
  EXPECT_THAT(reply.grants, IsEmpty());
  Done(grants);
  EXPECT_EQ(core->state(), JobState::kDraining);
  EXPECT_EQ(Snapshot(), 2u);
  EXPECT_EQ(core->state(), JobState::kDrained);
  Restart();
  EXPECT_EQ(core->state(), JobState::kDrained);
  options.run_id = "run-2";
  Restart();
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_THAT(Want(5).grants, SizeIs(3));
}

TEST_F(AdminTest, ADrainDoesNotWaitForEver) {
  Start();
  Register(5);
  const auto grants = Want(2).grants;
  WorkerExchangeRequest request = Request();
  Hold(grants, &request);
  request.done.push_back({grants[0].shard, grants[0].token, grants[0].restore_epoch, {}, {}});
  Exchange(request);
  core->Drain(At());
  Advance(options.drain_timeout);
  EXPECT_EQ(core->leases().size(), 0u);
  Advance(options.drain_timeout);
  EXPECT_EQ(core->state(), JobState::kDrained);
}

TEST_F(AdminTest, CancelEndsTheJob) {
  Start();
  const auto grants = Want(1).grants;
  EXPECT_THAT(core->Cancel({"enough", false}, At()), testing::IsOk());
  EXPECT_EQ(core->state(), JobState::kCancelled);
  const WorkerExchangeReply reply = Want(1, grants);
  EXPECT_EQ(reply.directive, JobDirective::kEnd);
  EXPECT_THAT(reply.lost, SizeIs(1));
  EXPECT_THAT(core->Cancel({"again", true}, At()), testing::IsOk());
  EXPECT_EQ(core->reason(), "enough");
  EXPECT_THAT(core->Cancel({"again", false}, At()), testing::IsOk());
  EXPECT_EQ(core->reason(), "enough");
}

TEST_F(AdminTest, WhatHasEndedOtherwiseIsNotCancelled) {
  Start();
  EXPECT_THAT(core->Cancel({"a crash loop", true}, At()), testing::IsOk());
  EXPECT_THAT(core->Cancel({"enough", false}, At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("failed: a crash loop")));
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_EQ(core->reason(), "a crash loop");
}

TEST_F(AdminTest, RetriesFailedShards) {
  options.leases.failures_max = 1;
  Start();
  const auto grants = Want(1).grants;
  WorkerExchangeRequest request = Request();
  request.returned.push_back({grants[0].shard, grants[0].token, true, "bad", false});
  Exchange(request);
  EXPECT_EQ(core->ledger().queue().StateOf(grants[0].shard), ShardState::kFailed);
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t retried, core->RetryShards({}, At()));
  EXPECT_EQ(retried, 1u);
  EXPECT_EQ(Want(1).grants[0].shard, grants[0].shard);
  EXPECT_THAT(core->RetryShards({grants[0].shard}, At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is leased, not FAILED")));
  EXPECT_THAT(core->RetryShards({{DatasetId(9), EpochIndex(0), ShardIndex(0)}}, At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("9/0/0")));
  EXPECT_THAT(core->Cancel({"", false}, At()), testing::IsOk());
  EXPECT_THAT(core->RetryShards({}, At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--retry-failed")));
}

TEST_F(AdminTest, AShardThatIsNamedTwiceIsRetriedOnceAndAWrongNameRetriesNone) {
  options.leases.failures_max = 1;
  Start();
  const auto grants = Want(3).grants;
  WorkerExchangeRequest request = Request();
  for (const ShardGrant& grant : grants) {
    request.returned.push_back({grant.shard, grant.token, true, "bad", false});
  }
  Exchange(request);
  EXPECT_EQ(core->ledger().queue().failed_count(), 3u);
  const ShardId todo{DatasetId(0), EpochIndex(0), ShardIndex(3)};
  EXPECT_THAT(core->RetryShards({grants[0].shard, todo}, At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is todo, not FAILED")));
  EXPECT_EQ(core->ledger().queue().failed_count(), 3u);
  EXPECT_EQ(core->RetryShards({grants[0].shard, grants[0].shard}, At()).value(), 1u);
  EXPECT_EQ(EventOf("shards-retried"), ": 1 shard");
  EXPECT_EQ(core->RetryShards({}, At()).value(), 2u);
  EXPECT_EQ(EventOf("shards-retried"), ": 2 shards");
  const uint64_t events = core->events().newest();
  EXPECT_EQ(core->RetryShards({}, At()).value(), 0u);
  EXPECT_EQ(core->events().newest(), events) << "nothing happened";
}

TEST_F(AdminTest, AFailedJobNamesItsFirstFailedShards) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 7)};
  options.leases.failures_max = 1;
  Start();
  WorkerExchangeRequest request = Request();
  for (const ShardGrant& grant : Want(7).grants) {
    request.returned.push_back(
        {grant.shard, grant.token, true, fmt::format("bad-{}", grant.shard.index.value()), false});
  }
  Exchange(request);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_EQ(core->reason(),
            "7 shards FAILED (`muster run --retry-failed` tries again): "
            "0/0/0 of dataset 'train': worker-0: bad-0; 0/0/1 of dataset 'train': worker-0: bad-1; "
            "0/0/2 of dataset 'train': worker-0: bad-2; 0/0/3 of dataset 'train': worker-0: bad-3; "
            "0/0/4 of dataset 'train': worker-0: bad-4; and 2 more");
}

TEST_F(AdminTest, ANewRunRestoresEverythingOnTheServersThereAreNow) {
  options.partitions = 4;
  options.servers = 2;
  Start();
  Register(5, 0);
  Register(6, 1);
  Done(Want(1).grants);
  options.servers = 1;
  options.run_id = "run-2";
  Restart();
  EXPECT_FALSE(core->in_grace_period());
  EXPECT_EQ(core->totals().replayed_shards, 1u);
  EXPECT_EQ(core->partitions().LoadOf(ServerId(0)).owned, 4u);
  EXPECT_EQ(core->partitions().entry(PartitionId(3)).owner_incarnation, ServerIncarnation());
  EXPECT_EQ(core->totals().master_restarts, 0u);
}

TEST_F(AdminTest, RestartsAndExitsAreOfThisRun) {
  Start();
  NodeReport report = Exit(9, 0, {});
  report.start = StartNumber(4);
  core->ReportNode(report, At());
  Sync();
  options.run_id = "run-2";
  Restart();
  const NodeRecord& node = core->nodes().nodes().at(report.node).record;
  EXPECT_EQ(RestartsOf(node), 0u);
  EXPECT_EQ(node.last_exit, "");
}

TEST_F(AdminTest, AJobThatDoesNotRunIsShownAsItWasFound) {
  Start();
  Done(Want(1).grants);
  Sync();
  const size_t events = journal.state().events.size();
  MasterCore found(options, journal.state(), MasterCore::AsFound{});
  EXPECT_EQ(found.incarnation(), core->incarnation());
  EXPECT_EQ(found.state(), JobState::kRunning);
  EXPECT_EQ(found.events().events().size(), events) << "nothing happens by looking";
  EXPECT_EQ(found.totals(), core->totals());
  EXPECT_EQ(found.ledger().done_seq(), DoneSeq(1));
}

TEST_F(AdminTest, ResumeWithMoreEpochsGoesOnAndWithFewerIsRefused) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 2, 1)};
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  Done(Want(2).grants);
  Snapshot();
  EXPECT_EQ(core->state(), JobState::kSucceeded);
  options.run_id = "run-2";
  options.datasets[0].epochs = 3;
  Restart();
  EXPECT_EQ(core->state(), JobState::kRunning);
  options.datasets[0].epochs = 1;
  EXPECT_THAT(MasterCore::CheckFits(options, journal.state()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may not be less")));
}

TEST_F(AdminTest, TheEventLogIsBounded) {
  Start();
  for (uint64_t start = 1; start < EventLog::kEventsMax + 10; ++start) {
    NodeReport started = Exit(0, 0, {});
    started.what = NodeReport::What::kStarted;
    started.start = StartNumber(start);
    core->ReportNode(started, At());
    NodeReport exited = Exit(9, 0, {});
    exited.start = StartNumber(start);
    core->ReportNode(exited, At());
  }
  Sync();
  EXPECT_EQ(core->events().events().size(), EventLog::kEventsMax);
  EXPECT_EQ(journal.state().events.size(), EventLog::kEventsMax);
  const uint64_t newest = core->events().newest();
  Restart();
  EXPECT_EQ(core->events().newest(), newest + 1) << "sequences go on without a gap";
}

}  // namespace
}  // namespace muster
