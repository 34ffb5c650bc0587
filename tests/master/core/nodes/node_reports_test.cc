#include "master/core/nodes/node_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace muster
