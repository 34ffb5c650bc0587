#include "master/core/nodes/drains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"

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
    books().nodes.SetState(node, "running");
  }
  Node* WorkerNode() {
    return books().nodes.FindOrAdd(kWorker.name, kRoleWorker, leasing().table());
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
  EXPECT_EQ(WorkerNode()->drain.state, NodeDrain::State::kDraining) << "the call was overtaken";
  EXPECT_TRUE(WorkerNode()->drain.told);
  drains().WorkerTold(kWorker.name, /*fresh=*/true, At());
  EXPECT_EQ(WorkerNode()->drain.state, NodeDrain::State::kDrained);
}

TEST_F(DrainsTest, TheJobsDirectiveGoesBeforeTheNodes) {
  StartWithWorker();
  Grant(1);
  EXPECT_EQ(drains().DirectiveOf(kWorker.name), JobDirective::kWork);
  EXPECT_EQ(drains().DirectiveOf("worker-9"), JobDirective::kWork) << "nobody knows it";
  Begin();
  EXPECT_EQ(drains().DirectiveOf(kWorker.name), JobDirective::kDrain);
  life().End(JobState::kCancelled, "", At());
  EXPECT_EQ(drains().DirectiveOf(kWorker.name), JobDirective::kEnd);
}

}  // namespace
}  // namespace muster
