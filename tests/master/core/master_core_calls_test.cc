/// Calls of servers that come late, or again, and what is told once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/master/core/core_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class CallsTest : public ::testing::Test, protected testing::CoreFixture {};

TEST_F(CallsTest, AnOvertakenCallOfAServerChangesNothing) {
  Start();
  Register(5);
  ServerExchangeRequest old = ServerRequest();
  old.owned.clear();
  old.fatal_error = "an old one";
  ExchangeServer(ServerRequest());
  for (int i = 0; i < 2; ++i) {
    const ServerExchangeReply reply = ExchangeServer(old);
    EXPECT_EQ(reply.master_incarnation, core->incarnation());
    EXPECT_EQ(reply.heartbeat_interval, options.server_times.heartbeat_interval);
    EXPECT_THAT(reply.owns, IsEmpty());
    old.sequence = server_sequence;  // as the newest: it has come twice
  }
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_EQ(core->partitions().LoadOf(ServerId(0)).serving, 2u);
}

TEST_F(CallsTest, AServerThatCallsIsNotLost) {
  Start();
  Register(5);
  for (int i = 0; i < 4; ++i) {
    Advance(options.server_times.timeout / 2);
    ExchangeServer(ServerRequest());
  }
  EXPECT_EQ(EventCount("node-lost"), 0u);
  EXPECT_EQ(EventCount("node-back"), 0u);
  Advance(options.server_times.timeout);
  EXPECT_EQ(EventOf("node-lost"),
            "ps-0: no heartbeat for 10000 ms; its partitions wait for a new process");
  NodeReport report{.node = "ps-0", .role = NodeRole::kServer};
  report.what = NodeReport::What::kExited;
  core->ReportNode(report, At());
  Advance(options.server_times.timeout);
  EXPECT_EQ(EventCount("node-lost"), 1u) << "it has ended";
  ExchangeServer(ServerRequest());
  EXPECT_EQ(core->nodes().nodes().at("ps-0").record.state, NodeState::kRunning);
  EXPECT_EQ(EventCount("node-back"), 0u) << "it was not lost but said to be dead";
}

TEST_F(CallsTest, ATableIsJournaledOnce) {
  Start();
  TableSpec table;
  table.name = "t";
  table.dim = 1;
  ASSERT_TRUE(core->RegisterTable(table, At()).ok());
  EXPECT_THAT(core->TakeMutations(), ::testing::Not(IsEmpty()));
  ASSERT_TRUE(core->RegisterTable(table, At()).ok());
  EXPECT_THAT(core->TakeMutations(), IsEmpty());
}

TEST_F(CallsTest, AWarmStartErrorIsToldWhenItChangesAndByEachProcess) {
  Start();
  Register(5);
  const auto tell = [&](const std::string& error) {
    ServerExchangeRequest request = ServerRequest();
    request.warm_start_error = error;
    ExchangeServer(request);
    return EventCount("warm-start-error");
  };
  EXPECT_EQ(tell("no folder /a"), 1u);
  EXPECT_EQ(tell("no folder /a"), 1u);
  EXPECT_EQ(tell(""), 1u);
  EXPECT_EQ(tell("no folder /a"), 2u);
  EXPECT_EQ(tell("no folder /b"), 3u);
  Register(6);
  EXPECT_EQ(tell("no folder /b"), 4u);
}

TEST_F(CallsTest, NamesOfMetricsThatFitAreKept) {
  options.limits.metric_names = 3;
  options.snapshot_interval = seconds(0);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  const auto done = [&](const std::vector<std::string>& means,
                        const std::vector<std::string>& aucs) {
    const auto grants = Want(1).grants;
    WorkerExchangeRequest request = Request();
    Hold(grants, &request);
    DoneReport report{grants.at(0).shard, grants[0].token, grants[0].restore_epoch, {}, {}};
    for (const std::string& name : means) report.metrics.means[name] = {1, 1};
    for (const std::string& name : aucs) AddScore(&report.metrics.aucs[name], 0.5, true);
    request.done.push_back(report);
    Exchange(request);
    Snapshot();
  };
  done({"a"}, {"x"});
  done({"b"}, {});
  EXPECT_EQ(EventCount("metrics-dropped"), 0u) << "as many as there may be";
  done({"a", "b"}, {"x"});
  EXPECT_EQ(EventCount("metrics-dropped"), 0u) << "all of them are known";
  done({"a"}, {"y"});
  EXPECT_EQ(EventOf("metrics-dropped"),
            ": epoch 1 of dataset 'train' has 3 metrics, which is the limit. Metrics with other "
            "names are dropped");
  const ShardMetrics& metrics = *core->ledger().Metrics(DatasetId(0), EpochIndex(0));
  EXPECT_THAT(metrics.means, UnorderedElementsAre(Key("a"), Key("b")));
  EXPECT_THAT(metrics.aucs, ElementsAre(Key("x")));
  EXPECT_EQ(metrics.means.at("a"), (WeightedMean{3, 3}));
}

TEST_F(CallsTest, SnapshotsAreAskedForAtOnceWhenFailuresEndTheJob) {
  options.leases.failures_max = 1;
  options.limits.failure_bytes = 1;
  options.snapshot_interval = seconds(60);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  const auto grants = Want(3).grants;
  ASSERT_THAT(grants, SizeIs(3));
  WorkerExchangeRequest request = Request();
  Hold({grants[1], grants[2]}, &request);
  request.done.push_back({grants[1].shard, grants[1].token, grants[1].restore_epoch, {}, {}});
  request.returned.push_back({grants[0].shard, grants[0].token, true, "bad", false});
  Exchange(request);
  EXPECT_THAT(ExchangeServer(ServerRequest()).snapshots, IsEmpty()) << "a shard is on lease";
  Done({grants[2]});
  EXPECT_EQ(Snapshot(), 2u);
  EXPECT_EQ(core->state(), JobState::kFailed);
}

}  // namespace
}  // namespace muster
