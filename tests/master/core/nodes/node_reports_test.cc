#include "master/core/nodes/node_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "tests/master/core/core_fixture.h"
#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using ::testing::IsEmpty;
using testing::kWorker;
using testing::PartsFixture;
using ::testing::SizeIs;

class NodeReportsTest : public ::testing::Test, protected PartsFixture {
 protected:
  /// The trainer of the worker's first start has crashed in the run of this lease.
  NodeReport Crash(LeaseToken computing) {
    NodeReport report;
    report.node = kWorker.name;
    report.role = NodeRole::kWorker;
    report.what = NodeReport::What::kExited;
    report.exit_code = 1;
    report.computing_token = computing;
    report.minibatches_started = 2;
    return report;
  }
};

TEST_F(NodeReportsTest, ACrashEndsWhatItsProcessHeldAndChargesTheShardItWasIn) {
  Start();
  const std::vector<ShardGrant> grants = Grant(2);
  reports().Take(Crash(grants[1].token), At());
  EXPECT_EQ(leasing().table().size(), 0u);
  EXPECT_EQ(books().ledger.FindFailure(grants[0].shard), nullptr);
  ASSERT_NE(books().ledger.FindFailure(grants[1].shard), nullptr);
  EXPECT_EQ(books().ledger.FindFailure(grants[1].shard)->failures, 1u);
  EXPECT_EQ(books().totals.redelivered_minibatches, 2u) << "what was begun runs again";
}

TEST_F(NodeReportsTest, AShardThatGoesOnElsewhereIsNotCharged) {
  Start();
  const ShardGrant grant = Grant(1).at(0);
  leasing().EndOf(kWorker, Leasing::EndCause::kNodeFailure);
  const WorkerKey other{"worker-1", 9};
  leasing().Join(other, now);
  WorkerExchangeRequest request;
  request.want = 1;
  WorkerExchangeReply reply;
  leasing().Grant(request, other, {.shards = 1}, At(), &reply);
  ASSERT_EQ(reply.grants.at(0).shard, grant.shard);
  reports().Take(Crash(grant.token), At());
  EXPECT_THAT(Events("shard-failure"), IsEmpty());
  EXPECT_EQ(leasing().table().size(), 1u) << "it is another's now";
  EXPECT_EQ(failures().Find(grant.token), nullptr) << "and the report has been heard";
}

TEST_F(NodeReportsTest, NothingIsChargedWhenTheJobIsOver) {
  Start();
  const ShardGrant grant = Grant(1).at(0);
  life().End(JobState::kCancelled, "", At());
  reports().Take(Crash(grant.token), At());
  EXPECT_THAT(Events("shard-failure"), IsEmpty());
  EXPECT_THAT(Events("node-exited"), SizeIs(1));
}

NodeReport Held(const std::string& node, NodeWait wait, uint64_t start = 1) {
  NodeReport report;
  report.node = node;
  report.role = NodeRole::kServer;
  report.start = StartNumber(start);
  report.what = NodeReport::What::kHeld;
  report.wait = wait;
  report.text = "0/3 nodes are available";
  return report;
}

TEST_F(NodeReportsTest, ADisruptionIsNoFailureOfTheShardHoweverTheProcessEnded) {
  Start();
  const ShardGrant grant = Grant(1).at(0);
  NodeReport report = Crash(grant.token);
  report.disruption = Disruption::kPreempted;
  report.text = "by a pod";
  reports().Take(report, At());
  EXPECT_EQ(books().ledger.FindFailure(grant.shard), nullptr);
  EXPECT_EQ(leasing().table().size(), 0u);
  EXPECT_THAT(Events("node-exited"), IsEmpty());
  ASSERT_THAT(Events("node-preempted"), SizeIs(1));
}

TEST_F(NodeReportsTest, EveryDisruptionIsAnEventOfItsOwn) {
  Start();
  const std::pair<Disruption, const char*> kinds[] = {
      {Disruption::kEvicted, "node-evicted"},
      {Disruption::kPreempted, "node-preempted"},
      {Disruption::kDrained, "node-machine-drained"},
      {Disruption::kNodeLost, "node-machine-lost"},
      {Disruption::kDeleted, "node-deleted"}};
  uint64_t start = 1;
  for (const auto& [disruption, kind] : kinds) {
    NodeReport report{.node = "worker-7", .start = StartNumber(start++)};
    report.what = NodeReport::What::kExited;
    report.disruption = disruption;
    reports().Take(report, At());
    EXPECT_THAT(Events(kind), SizeIs(1)) << kind;
    EXPECT_TRUE(IsExitKind(kind));
  }
  EXPECT_TRUE(IsExitKind("node-exited"));
  EXPECT_FALSE(IsExitKind("node-lost"));
}

TEST_F(NodeReportsTest, AWaitIsToldOnceUntilItChangesAndSaysWhatToDo) {
  Start();
  reports().Take(Held("ps-7", NodeWait::kUnschedulable), At());
  reports().Take(Held("ps-7", NodeWait::kUnschedulable), At());
  ASSERT_THAT(Events("node-unschedulable"), SizeIs(1));
  EXPECT_THAT(
      Events("node-unschedulable")[0],
      ::testing::HasSubstr("no machine has room for it: 0/3 nodes are available. It starts"));
  const Node& node = books().nodes.nodes().at("ps-7");
  ASSERT_NE(HoldOf(node), nullptr);
  EXPECT_EQ(HoldOf(node)->wait, NodeWait::kUnschedulable);
  EXPECT_EQ(HoldOf(node)->reason, "0/3 nodes are available");
  const std::pair<NodeWait, const char*> others[] = {{NodeWait::kImage, "node-image-error"},
                                                     {NodeWait::kQuota, "node-quota"},
                                                     {NodeWait::kForbidden, "node-forbidden"},
                                                     {NodeWait::kConfig, "node-config-error"},
                                                     {NodeWait::kNone, "node-placed"}};
  for (const auto& [wait, kind] : others) {
    reports().Take(Held("ps-7", wait), At());
    EXPECT_THAT(Events(kind), SizeIs(1)) << kind;
  }
  EXPECT_EQ(HoldOf(node), nullptr) << "it is on its way";
}

TEST_F(NodeReportsTest, AStartThatHasAProcessIsNotHeldAnyMore) {
  Start();
  reports().Take(Held("ps-7", NodeWait::kQuota, 2), At());
  const Node& node = books().nodes.nodes().at("ps-7");
  NodeReport started{.node = "ps-7", .role = NodeRole::kServer, .start = StartNumber(2)};
  reports().Take(started, At());
  EXPECT_EQ(HoldOf(node), nullptr);
  reports().Take(Held("ps-7", NodeWait::kImage, 2), At());
  EXPECT_EQ(HoldOf(node), nullptr) << "it came too late";
  EXPECT_THAT(Events("node-image-error"), IsEmpty());
}

TEST_F(NodeReportsTest, AnotherRunForgetsTheHoldsOfTheLast) {
  Start();
  reports().Take(Held("ps-7", NodeWait::kQuota, 9), At());
  books().nodes.BeginRun();
  EXPECT_EQ(HoldOf(books().nodes.nodes().at("ps-7")), nullptr);
}

TEST_F(NodeReportsTest, ThatTheClusterIsAwayIsToldOnceForAllNodes) {
  Start();
  reports().Take(Held("ps-7", NodeWait::kUnreachable), At());
  reports().Take(Held("ps-8", NodeWait::kUnreachable), At());
  EXPECT_THAT(Events("cluster-away"), SizeIs(1));
  reports().Take(Held("ps-7", NodeWait::kNone), At());
  EXPECT_THAT(Events("cluster-back"), IsEmpty()) << "not yet for the other one";
  NodeReport started{.node = "ps-8", .role = NodeRole::kServer};
  reports().Take(started, At());
  EXPECT_THAT(Events("cluster-back"), SizeIs(1));
  EXPECT_THAT(Events("node-placed"), IsEmpty()) << "that was not what they waited for";
}

TEST_F(NodeReportsTest, AnswersToOtherLimitsAreEvents) {
  Start();
  const std::pair<ResizeAnswer, const char*> kinds[] = {
      {ResizeAnswer::kDone, "node-resized"},
      {ResizeAnswer::kDeferred, "node-resize-deferred"},
      {ResizeAnswer::kRefused, "node-resize-refused"}};
  for (const auto& [answer, kind] : kinds) {
    NodeReport report{.node = kWorker.name};
    report.what = NodeReport::What::kResized;
    report.resize_answer = answer;
    report.text = "the words";
    reports().Take(report, At());
    ASSERT_THAT(Events(kind), SizeIs(1)) << kind;
    EXPECT_THAT(Events(kind)[0], ::testing::HasSubstr("the words"));
  }
}

class ToldExitsTest : public ::testing::Test, protected testing::CoreFixture {};

TEST_F(ToldExitsTest, AnExitIsToldOnceHoweverOftenItIsReported) {
  Start();
  const auto exits = [this] {
    return std::ranges::count_if(core->events().events(), [](const auto& entry) {
      return entry.second.kind == kNodeExited.word();
    });
  };
  NodeReport exited{.node = "worker-0"};
  exited.what = NodeReport::What::kExited;
  exited.signal = SIGKILL;
  core->ReportNode(exited, At());
  // A call of the dead process was on its way.
  Hello("worker-0", 7, 1);
  core->ReportNode(exited, At());
  EXPECT_EQ(core->nodes().nodes().at("worker-0").record.state, NodeState::kExited);
  EXPECT_EQ(exits(), 1);
  Sync();
  Restart();
  Hello("worker-0", 8, 2);
  core->ReportNode(exited, At());
  EXPECT_EQ(core->nodes().nodes().at("worker-0").record.state, NodeState::kRunning);
  EXPECT_EQ(exits(), 1) << "by a scaler that took over";
}

}  // namespace
}  // namespace muster
