#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::CoreFixture;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;
using testing::StatusIs;

class DrainTest : public ::testing::Test, protected CoreFixture {
 protected:
  NodeDrain Drain(const std::string& name, milliseconds timeout = milliseconds(0)) {
    absl::StatusOr<NodeDrain> drain = core->DrainNode(name, timeout, At());
    MUSTER_CHECK_MSG(drain.ok(), drain.status().ToString());
    Sync();
    return *drain;
  }
  const NodeDrain& DrainOf(const std::string& name) const {
    return core->nodes().nodes().at(name).drain;
  }
  void Exited(const std::string& name, uint32_t signal, uint64_t incarnation = 0) {
    NodeReport report{.node = name, .role = NodeRole::kWorker};
    if (name.starts_with("ps")) report.role = NodeRole::kServer;
    report.what = NodeReport::What::kExited;
    report.signal = signal;
    report.incarnation = incarnation;
    core->ReportNode(report, At());
    Sync();
  }
};

TEST_F(DrainTest, AWorkerFinishesWhatItHoldsAndGetsNothingMore) {
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 20)};
  Start();
  Hello("worker-0", 7);
  Hello("worker-1", 8);
  const std::vector<ShardGrant> held = Want(2).grants;
  ASSERT_THAT(held, SizeIs(2));
  EXPECT_EQ(Drain("worker-0").left, 2u);
  EXPECT_EQ(Drain("worker-0").state, DrainState::kDraining) << "a repeat changes nothing";
  EXPECT_EQ(EventCount("node-drain-began"), 1u);
  const WorkerExchangeReply told = Want(3, held);
  EXPECT_EQ(told.directive, JobDirective::kDrain);
  EXPECT_THAT(told.grants, IsEmpty());
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDraining);
  WorkerExchangeRequest returns = Request();
  Hold({held[0]}, &returns);
  returns.newest_grant = held[1].token;
  returns.returned.push_back({held[1].shard, held[1].token, false});
  Exchange(returns);
  EXPECT_EQ(DrainOf("worker-0").left, 1u);
  EXPECT_EQ(Done({held[0]})[0], DoneCode::kAccepted);
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDrained);
  EXPECT_EQ(Drain("worker-0").state, DrainState::kDrained);
  WorkerExchangeRequest other = Request("worker-1", 8);
  other.want = 4;
  const WorkerExchangeReply others = Exchange(other);
  EXPECT_EQ(others.directive, JobDirective::kWork);
  ASSERT_THAT(others.grants, SizeIs(4));
  EXPECT_EQ(others.grants[0].shard, held[1].shard) << "what was handed back is there for others";
  EXPECT_EQ(core->state(), JobState::kRunning);
}

TEST_F(DrainTest, AWorkerThatLeavesWithCode0ChargesNobodyAndANewProcessWorks) {
  Start();
  Hello("worker-0", 7, 1);
  const std::vector<ShardGrant> held = Want(1).grants;
  Want(0, held);
  Drain("worker-0");
  NodeReport report{.node = "worker-0", .role = NodeRole::kWorker};
  report.what = NodeReport::What::kExited;
  report.computing_token = held[0].token;
  report.incarnation = 7;
  core->ReportNode(report, At());
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDrained);
  EXPECT_EQ(core->ledger().FindFailure(held[0].shard)->failures, 0u);
  EXPECT_THAT(core->DrainNode("worker-0", {}, At()), IsOk()) << "it is drained";
  Hello("worker-0", 9, 2);
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kNone);
  WorkerExchangeRequest request = Request("worker-0", 9);
  request.want = 1;
  EXPECT_THAT(Exchange(request).grants, SizeIs(1));
}

TEST_F(DrainTest, AfterTheTimeoutAWorkersShardsRunElsewhere) {
  Start();
  Hello("worker-0", 7);
  const std::vector<ShardGrant> held = Want(1).grants;
  Drain("worker-0", seconds(2));
  for (int i = 0; i < 3; ++i) {
    Want(0, held);
    Advance(milliseconds(500));
  }
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDraining);
  Advance(milliseconds(500));
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDrained);
  EXPECT_TRUE(HasEvent("drain-timeout"));
  EXPECT_EQ(core->leases().size(), 0u);
  EXPECT_EQ(DrainOf("worker-0").left, 0u);
  EXPECT_THAT(Want(0, held).lost, SizeIs(1)) << "its loop ends";
}

TEST_F(DrainTest, AWorkerThatHearsOfItsDrainAfterTheTimeoutLeavesToo) {
  Start();
  Hello("worker-0", 7);
  Drain("worker-0", seconds(1));
  Advance(seconds(1));
  ASSERT_EQ(DrainOf("worker-0").state, DrainState::kDrained);
  EXPECT_EQ(Want(1).directive, JobDirective::kDrain);
  EXPECT_THAT(core->ResumeNode("worker-0", At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has heard of its drain")));
}

TEST_F(DrainTest, AnotherProcessOfADrainedNodeBeginsWithout) {
  Start();
  Hello("worker-0", 7, 1);
  const std::vector<ShardGrant> held = Want(1).grants;
  Drain("worker-0");
  NodeReport report{.node = "worker-0", .role = NodeRole::kWorker, .pid = 11};
  report.start = StartNumber(2);
  core->ReportNode(report, At());
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDraining) << "the one before still runs";
  report.what = NodeReport::What::kExited;
  core->ReportNode(report, At());
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDrained);
  EXPECT_EQ(DrainOf("worker-0").left, 0u);
  report.what = NodeReport::What::kStarted;
  report.start = StartNumber(3);
  report.pid = 12;
  core->ReportNode(report, At());
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kNone);
  EXPECT_EQ(core->nodes().nodes().at("worker-0").record.pid, 12u);
}

TEST_F(DrainTest, TheMastersOwnPauseIsNotTheNodesTime) {
  Start();
  Hello("worker-0", 7);
  Want(1);
  Drain("worker-0", seconds(2));
  StandStill(seconds(9));
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDraining);
}

TEST_F(DrainTest, AMasterRestartForgetsTheDrainAndARepeatGoesOnWithIt) {
  Start();
  Hello("worker-0", 7);
  const std::vector<ShardGrant> held = Want(1).grants;
  Drain("worker-0");
  Restart();
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kNone);
  EXPECT_EQ(Drain("worker-0").left, 0u) << "leases are reported again";
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDraining);
  EXPECT_THAT(Want(0, held).lost, IsEmpty());
  EXPECT_EQ(DrainOf("worker-0").left, 1u);
  EXPECT_EQ(Done(held)[0], DoneCode::kAccepted);
  EXPECT_EQ(DrainOf("worker-0").state, DrainState::kDrained);
}

TEST_F(DrainTest, AServerSnapshotsAtOnceWhatWasDoneAndServesOn) {
  options.snapshot_interval = seconds(60);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  Hello("worker-0", 7);
  Done(Want(1).grants);
  EXPECT_EQ(Snapshot(), 0u) << "not due";
  EXPECT_EQ(Drain("ps-0").left, 2u);
  const std::vector<ShardGrant> later = Want(1).grants;
  EXPECT_THAT(later, SizeIs(1)) << "workers go on";
  Done(later);
  ServerExchangeReply reply = ExchangeServer(ServerRequest());
  EXPECT_THAT(reply.snapshots, SizeIs(2));
  EXPECT_LE(reply.heartbeat_interval, milliseconds(50));
  EXPECT_FALSE(reply.drained);
  EXPECT_EQ(Snapshot(), 2u);
  EXPECT_EQ(DrainOf("ps-0").state, DrainState::kDrained);
  EXPECT_EQ(DrainOf("ps-0").left, 0u);
  Done(Want(1).grants);
  reply = ExchangeServer(ServerRequest());
  EXPECT_TRUE(reply.drained);
  EXPECT_THAT(reply.snapshots, IsEmpty()) << "no more than the drain needs";
  EXPECT_THAT(core->ResumeNode("ps-0", At()), testing::IsOk());
  EXPECT_EQ(DrainOf("ps-0").state, DrainState::kNone);
  EXPECT_EQ(Drain("ps-0").left, 2u) << "drained again";
}

TEST_F(DrainTest, AServerWithNothingNewIsDrainedAtOnce) {
  Start();
  Register(5);
  EXPECT_EQ(Drain("ps-0").state, DrainState::kDrained);
}

TEST_F(DrainTest, AServerWhoseSnapshotsFailIsDrainedAfterTheTimeoutAsItIs) {
  options.snapshot_interval = seconds(60);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  Hello("worker-0", 7);
  Done(Want(1).grants);
  Drain("ps-0", seconds(1));
  Advance(milliseconds(1'000));
  EXPECT_EQ(DrainOf("ps-0").state, DrainState::kDrained);
  EXPECT_EQ(DrainOf("ps-0").left, 2u);
  EXPECT_THAT(core->events().events().rbegin()->second.text,
              HasSubstr("2 partitions have no new snapshot"));
  Register(6);
  EXPECT_EQ(DrainOf("ps-0").state, DrainState::kNone) << "a new process begins without";
}

TEST_F(DrainTest, AServerThatIsToldToEndAsksForItself) {
  options.snapshot_interval = seconds(60);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  Hello("worker-0", 7);
  Drain("ps-0");
  ASSERT_EQ(DrainOf("ps-0").state, DrainState::kDrained);
  Done(Want(1).grants);
  ServerExchangeRequest leaving = ServerRequest();
  leaving.leaving = true;
  const ServerExchangeReply first = ExchangeServer(leaving);
  EXPECT_FALSE(first.drained) << "what was drained before is behind";
  ASSERT_THAT(first.snapshots, SizeIs(2));
  leaving = ServerRequest();
  leaving.leaving = true;
  for (const SnapshotCommand& command : first.snapshots) {
    leaving.snapshots.push_back(
        {command.partition,
         command.epoch,
         {command.number, command.cut, {{"f" + ToString(command.number), 1, command.number}}}});
  }
  EXPECT_TRUE(ExchangeServer(leaving).drained);
  const size_t drains = EventCount("node-drain-began");
  leaving = ServerRequest();
  leaving.leaving = true;
  EXPECT_TRUE(ExchangeServer(leaving).drained);
  EXPECT_EQ(EventCount("node-drain-began"), drains) << "it asks until it has ended";
  Exited("ps-0", 0);
  EXPECT_THAT(core->Cancel({"enough", false}, At()), testing::IsOk());
  Register(6);
  leaving = ServerRequest();
  leaving.leaving = true;
  EXPECT_TRUE(ExchangeServer(leaving).drained) << "the job is over";
}

TEST_F(DrainTest, WhatCannotBeDrainedIsRefusedWithTheReason) {
  Start();
  Hello("worker-0", 7);
  const auto drain = [&](const std::string& name) {
    return core->DrainNode(name, {}, At()).status();
  };
  EXPECT_THAT(drain("worker-9"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("worker-9")));
  for (const NodeRole role : {NodeRole::kMaster, NodeRole::kScaler}) {
    const std::string name(ToString(role));
    core->ReportNode({.node = name, .role = role, .pid = 1}, At());
    EXPECT_THAT(drain(name), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("only workers and servers can, not a " + name)));
    EXPECT_EQ(core->nodes().nodes().at(name).drain.state, DrainState::kNone);
  }
  Exited("worker-0", SIGKILL, 7);
  EXPECT_THAT(drain("worker-0"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("exited")));
  EXPECT_THAT(core->ResumeNode("worker-9", At()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("worker-9")));
  EXPECT_THAT(core->ResumeNode("worker-0", At()), IsOk()) << "it does not drain";
  Hello("worker-1", 8);
  Drain("worker-1");
  EXPECT_THAT(core->ResumeNode("worker-1", At()), IsOk()) << "it has not heard of it";
  Drain("worker-1");
  Exchange(Request("worker-1", 8));
  EXPECT_THAT(core->ResumeNode("worker-1", At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has heard of its drain")));
  EXPECT_THAT(core->Cancel({"enough", false}, At()), testing::IsOk());
  EXPECT_THAT(drain("worker-1"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cancelled")));
}

}  // namespace
}  // namespace muster
