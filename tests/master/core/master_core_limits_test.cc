#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::Contains;
using testing::CoreFixture;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::Key;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

/// The core's memory is bounded, whatever workers send, and however long snapshots fail.
class LimitsTest : public ::testing::Test, protected CoreFixture {
 protected:
  /// Fails what worker-0 holds of `failed`, and continues with `others`.
  void FailTrainer(const ShardGrant& failed, const std::vector<ShardGrant>& others) {
    WorkerExchangeRequest request = Request();
    Hold(others, &request);
    request.newest_grant = std::max(request.newest_grant, failed.token);
    request.returned.push_back({failed.shard, failed.token, true, "loss is NaN", false});
    Exchange(request);
  }
  void StartFailing() {
    options.leases.failures_max = 1;
    options.limits.failure_bytes = 1;
    options.snapshot_interval = std::chrono::seconds(0);
    Start();
    Register(5);
    ExchangeServer(ServerRequest());
  }
};

TEST_F(LimitsTest, NothingIsGrantedWhileTooMuchIsDoneUntilSnapshotsWork) {
  options.limits.done_bytes = 2;
  options.snapshot_interval = std::chrono::hours(1);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  const auto grants = Want(2).grants;
  ASSERT_THAT(grants, SizeIs(2));
  WorkerExchangeRequest request = Request();
  Hold(grants, &request);
  request.done.push_back({grants[0].shard, grants[0].token, grants[0].restore_epoch, {}, {}});
  request.want = 2;
  EXPECT_THAT(Exchange(request).grants, IsEmpty());
  EXPECT_TRUE(HasEvent("granting-stopped"));
  EXPECT_THAT(Done({grants[1]}), ElementsAre(DoneCode::kAccepted)) << "what is on lease may end";
  EXPECT_THAT(Want(2).grants, IsEmpty());
  Restart();
  Advance(options.leases.grace_period);
  EXPECT_THAT(Want(2).grants, IsEmpty()) << "a restart makes no room";
  EXPECT_GT(Snapshot(), 0u) << "they are asked for at once";
  EXPECT_EQ(core->ledger().queue().committed_count(), 2u);
  EXPECT_EQ(core->ledger().done_bytes(), 0u);
  EXPECT_TRUE(HasEvent("granting-resumed"));
  EXPECT_THAT(Want(2).grants, SizeIs(2));
}

TEST_F(LimitsTest, AnEpochThatIsDoneTakesRoomBesidesItsShards) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 9, 1)};
  Start();
  Register(5);
  Done(Want(1).grants);
  const uint64_t of_one = core->ledger().done_bytes();
  EXPECT_GE(of_one, Ledger::kEpochBytes);
  Done(Want(2).grants);
  EXPECT_EQ(core->ledger().done_bytes(), 3 * of_one);
}

TEST_F(LimitsTest, ABrokenTrainerEndsTheJobWhenWhatIsUnderWayIsCommitted) {
  StartFailing();
  const auto grants = Want(2).grants;
  FailTrainer(grants[0], {grants[1]});
  EXPECT_TRUE(HasEvent("granting-stopped"));
  EXPECT_THAT(Want(2, {grants[1]}).grants, IsEmpty());
  EXPECT_EQ(core->state(), JobState::kRunning) << "a shard is on lease";
  EXPECT_THAT(Done({grants[1]}), ElementsAre(DoneCode::kAccepted));
  EXPECT_EQ(core->state(), JobState::kRunning) << "a shard is DONE";
  Snapshot();
  EXPECT_EQ(core->ledger().queue().committed_count(), 1u);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("too many failures to continue: 1 shard FAILED"));
  options.run_id = "run-2";
  options.retry_failed = true;
  Restart();
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_THAT(Want(4).grants, SizeIs(3)) << "nothing is lost";
}

TEST_F(LimitsTest, TooManyFailedShardsEndTheJobToo) {
  options.leases.failures_max = 1;
  options.failed_shards_max = 0;
  options.snapshot_interval = std::chrono::seconds(0);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  const auto grants = Want(2).grants;
  FailTrainer(grants[0], {grants[1]});
  EXPECT_THAT(EventOf("granting-stopped"),
              HasSubstr("1 shard FAILED, and spec.training.failedShardsMax is 0"));
  EXPECT_THAT(Want(2, {grants[1]}).grants, IsEmpty());
  EXPECT_THAT(Done({grants[1]}), ElementsAre(DoneCode::kAccepted)) << "what is on lease may end";
  Snapshot();
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("too many failures to continue: 1 shard FAILED"));
  options.run_id = "run-2";
  options.failed_shards_max = 1;
  Restart();
  EXPECT_EQ(core->state(), JobState::kRunning) << "the limit was raised";
}

TEST_F(LimitsTest, TryingFailedShardsAgainMakesRoom) {
  StartFailing();
  const auto grants = Want(2).grants;
  FailTrainer(grants[0], {grants[1]});
  ASSERT_THAT(core->RetryShards({}, At()), IsOk());
  EXPECT_EQ(core->ledger().failure_bytes(), 0u);
  EXPECT_THAT(Want(4, {grants[1]}).grants, SizeIs(3));
}

TEST_F(LimitsTest, AnEpochHasSoManyMetricsAndNoMore) {
  options.limits.metric_names = 2;
  options.snapshot_interval = std::chrono::seconds(0);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  for (int i = 0; i < 3; ++i) {
    const auto grants = Want(1).grants;
    WorkerExchangeRequest request = Request();
    Hold(grants, &request);
    DoneReport done{grants[0].shard, grants[0].token, grants[0].restore_epoch, {}, {}};
    done.metrics.means["loss"] = {1, 1};
    done.metrics.means[fmt::format("loss of shard {}", i)] = {1, 1};
    AddScore(&done.metrics.aucs["auc"], 0.5, true);
    request.done.push_back(done);
    Exchange(request);
    Snapshot();
  }
  const ShardMetrics& metrics = *core->ledger().Metrics(DatasetId(0), EpochIndex(0));
  EXPECT_EQ(metrics.means.size() + metrics.aucs.size(), 2u);
  EXPECT_EQ(metrics.means.at("loss"), (WeightedMean{3, 3})) << "what is known continues";
  EXPECT_THAT(metrics.means, Contains(Key("loss of shard 0")));
  EXPECT_EQ(EventCount("metrics-dropped"), 1u);
}

TEST_F(LimitsTest, NodesThatEndedLongestAgoMakeRoomForNewOnes) {
  options.limits.nodes = 3;
  options.leases.duration = std::chrono::seconds(5);
  Start();
  const auto hello = [&](const std::string& name) {
    now += std::chrono::milliseconds(1);
    const absl::Status status = core->HelloWorker({name, 7}, StartNumber(1), At());
    Sync();
    return status;
  };
  const auto exit = [&](const std::string& name) {
    NodeReport report;
    report.node = name;
    report.role = NodeRole::kWorker;
    report.what = NodeReport::What::kExited;
    core->ReportNode(report, At());
    Sync();
  };
  ASSERT_THAT(hello("a"), IsOk());
  ASSERT_THAT(hello("b"), IsOk());
  ASSERT_THAT(hello("c"), IsOk());
  EXPECT_THAT(hello("d"),
              testing::StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("worker 'd': the job already has 3 live nodes")));
  exit("c");
  exit("b");
  ASSERT_THAT(hello("d"), IsOk()) << "b was heard before c";
  EXPECT_THAT(journal.state().nodes, UnorderedElementsAre(Key("a"), Key("c"), Key("d")));
  Hello("c", 8, 2);  // another process of c works
  WorkerExchangeRequest request = Request("c", 8);
  request.want = 1;
  ASSERT_THAT(Exchange(request).grants, SizeIs(1));
  exit("d");
  ASSERT_THAT(hello("e"), IsOk());
  EXPECT_THAT(journal.state().nodes, UnorderedElementsAre(Key("a"), Key("c"), Key("e")));
  Restart();
  EXPECT_THAT(core->nodes().nodes(), SizeIs(3));
  for (int i = 0; i < 20; ++i) {  // all are silent, and lost
    Advance(std::chrono::milliseconds(500));
  }
  for (int i = 0; i < 10; ++i) ASSERT_THAT(hello(fmt::format("new-{}", i % 3)), IsOk());
  EXPECT_THAT(journal.state().nodes, SizeIs(3));
}

TEST(NodeLimitTest, AJobOfTheLargestSizeHasRoomForAllItsNodes) {
  NodeTable nodes({}, CoreLimits().nodes);
  const LeaseTable leases;
  const auto add = [&](const std::string& name, NodeRole role) {
    return nodes.FindOrAdd(name, role, leases) != nullptr;
  };
  for (uint32_t i = 0; i < kWorkersMax; ++i) {
    ASSERT_TRUE(add(fmt::format("worker-{}", i), NodeRole::kWorker)) << i;
  }
  for (uint32_t i = 0; i < kServerReplicasMax; ++i) {
    ASSERT_TRUE(add(NodeTable::ServerName(ServerId(i)), NodeRole::kServer)) << i;
  }
  EXPECT_TRUE(add("master", NodeRole::kMaster));
  EXPECT_TRUE(add("scaler", NodeRole::kScaler));
}

TEST_F(LimitsTest, TicksCommitWhatWasTooMuchForOneStep) {
  options.limits.commits_at_once = 1;
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  Done(Want(2).grants);
  Advance(options.snapshot_interval);
  ASSERT_GT(Snapshot(), 0u);
  const uint64_t at_first = core->ledger().queue().committed_count();
  EXPECT_LT(at_first, 2u);
  Restart();  // by which nothing is forgotten of it
  Advance(std::chrono::milliseconds(50));
  Advance(std::chrono::milliseconds(50));
  EXPECT_EQ(core->ledger().queue().committed_count(), 2u);
  EXPECT_EQ(core->ledger().done_bytes(), 0u);
}

TEST_F(LimitsTest, WhatIsHeldIsCountedAlikeAfterARestart) {
  options.leases.failures_max = 2;
  Start();
  Register(5);
  const auto grants = Want(2).grants;
  FailTrainer(grants[0], {grants[1]});
  EXPECT_THAT(Done({grants[1]}), ElementsAre(DoneCode::kAccepted));
  const uint64_t done = core->ledger().done_bytes(), failures = core->ledger().failure_bytes();
  EXPECT_GT(done, 0u);
  EXPECT_GT(failures, 0u);
  Restart();
  EXPECT_EQ(core->ledger().done_bytes(), done);
  EXPECT_EQ(core->ledger().failure_bytes(), failures);
  Register(6);  // the DONE shard is replayed
  EXPECT_EQ(core->ledger().done_bytes(), 0u);
}

}  // namespace
}  // namespace muster
