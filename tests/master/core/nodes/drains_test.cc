#include "master/core/nodes/drains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kWorker;
using testing::PartsFixture;
using ::testing::SizeIs;

class DrainsTest : public ::testing::Test, protected PartsFixture {
 protected:
  void StartWithWorker() {
    Start();
    Node* const node = WorkerNode();
    node->record.incarnation = kWorker.incarnation;
    books().nodes.Learn(node, NodeNews::kHeard);
  }
  Node* WorkerNode() {
    return books().nodes.FindOrAdd(kWorker.name, NodeRole::kWorker, leasing().table());
  }
  NodeDrain Begin() {
    const auto drain = drains().Drain(kWorker.name, {}, At());
    MUSTER_CHECK(drain.ok());
    return *drain;
  }
};

TEST_F(DrainsTest, OnlyWhatTheWorkerHoldsNowIsCounted) {
  StartWithWorker();
  Grant(2);
  EXPECT_EQ(Begin().left, 2u);
  leasing().EndOf(kWorker, Leasing::EndCause::kReturned);
  drains().WorkerTold(kWorker.name, /*fresh=*/false, At());
  EXPECT_EQ(WorkerNode()->drain.state, DrainState::kDraining) << "the call was overtaken";
  EXPECT_TRUE(WorkerNode()->drain.told);
  drains().WorkerTold(kWorker.name, /*fresh=*/true, At());
  EXPECT_EQ(WorkerNode()->drain.state, DrainState::kDrained);
}

TEST_F(DrainsTest, TheJobsDirectiveGoesBeforeTheNodes) {
  StartWithWorker();
  Grant(1);
  EXPECT_EQ(drains().DirectiveOf(kWorker.name), JobDirective::kWork);
  EXPECT_EQ(drains().DirectiveOf("worker-9"), JobDirective::kWork) << "the node is unknown";
  Begin();
  EXPECT_EQ(drains().DirectiveOf(kWorker.name), JobDirective::kDrain);
  life().End(JobState::kCancelled, "", At());
  EXPECT_EQ(drains().DirectiveOf(kWorker.name), JobDirective::kEnd);
}

TEST_F(DrainsTest, AWorkerThatExitsIsDrainedAServerIsNot) {
  StartWithWorker();
  Grant(1);
  Begin();
  drains().Exited(WorkerNode(), At());
  EXPECT_THAT(Events("node-drained"), SizeIs(1));
  const ServerIncarnation process = Register(7);
  servers().Exchange(ServerCall(process, 1), At());
  TrainOne();
  EXPECT_THAT(drains().Drain("ps-0", {}, At()), testing::IsOk());
  Node* const server = books().nodes.Find("ps-0");
  ASSERT_EQ(server->drain.state, DrainState::kDraining);
  drains().Exited(server, At());
  EXPECT_EQ(server->drain.state, DrainState::kNone);
  EXPECT_THAT(Events("node-drained"), SizeIs(1)) << "what it had not snapshotted is not saved";
}

TEST_F(DrainsTest, AServerThatAsksAgainGoesOnWithItsDrain) {
  Start();
  const ServerIncarnation process = Register(7);
  servers().Exchange(ServerCall(process, 1), At());
  TrainOne();
  Node* const server = books().nodes.Find("ps-0");
  drains().ServerHeard(server, /*leaving=*/true, At());
  const TimePoint began = server->drain.began;
  EXPECT_EQ(server->drain.goal, DoneSeq(1));
  Pass(std::chrono::seconds(1));
  TrainOne();
  drains().ServerHeard(server, /*leaving=*/true, At());
  EXPECT_EQ(server->drain.began, began);
  EXPECT_EQ(server->drain.goal, DoneSeq(1));
  EXPECT_THAT(Events("node-drain-began"), ElementsAre("ps-0: 2 partitions without a new snapshot"));
}

TEST_F(DrainsTest, AServerDoesNotAskWhenTheJobIsOver) {
  Start();
  Register(7);
  life().End(JobState::kCancelled, "", At());
  drains().ServerHeard(books().nodes.Find("ps-0"), /*leaving=*/true, At());
  EXPECT_THAT(Events("node-drain-began"), IsEmpty());
}

}  // namespace
}  // namespace muster
