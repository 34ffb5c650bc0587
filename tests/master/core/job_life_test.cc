#include "master/core/job_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kWorker;
using testing::PartsFixture;
using testing::TrainShard;

class JobLifeTest : public ::testing::Test, protected PartsFixture {
 protected:
  JobLifeTest() { options.datasets.resize(1); }
};

TEST_F(JobLifeTest, SnapshotsAreNeededWhenNothingElseIsLeft) {
  Start();
  EXPECT_FALSE(life().NeedsSnapshots()) << "nothing is DONE";
  for (int i = 0; i < 3; ++i) TrainOne();
  EXPECT_FALSE(life().NeedsSnapshots()) << "a shard is left";
  const ShardGrant last = Grant(1).at(0);
  EXPECT_FALSE(life().NeedsSnapshots()) << "it is on lease";
  dones().Take(DoneOf(last), kWorker, At());
  EXPECT_TRUE(life().NeedsSnapshots());
  life().End(JobState::kCancelled, "", At());
  EXPECT_FALSE(life().NeedsSnapshots());
}

TEST_F(JobLifeTest, ADrainNeedsThemAsSoonAsNothingIsOnLease) {
  Start();
  TrainOne();
  const ShardGrant held = Grant(1).at(0);
  life().Drain(At());
  EXPECT_FALSE(life().NeedsSnapshots());
  leasing().EndOf(kWorker, Leasing::EndCause::kReturned);
  EXPECT_TRUE(life().NeedsSnapshots()) << "though shards are left";
}

TEST_F(JobLifeTest, TooMuchMemoryNeedsThemAtOnceAndStopsGranting) {
  options.limits.done_bytes = 1;
  Start();
  EXPECT_TRUE(life().MayGrantMore());
  TrainOne();
  Grant(1);
  life().CheckLimits(At());
  EXPECT_FALSE(life().MayGrantMore());
  EXPECT_TRUE(life().NeedsSnapshots());
}

TEST_F(JobLifeTest, TheEndEndsEveryLeaseAtOnce) {
  Start();
  Grant(2);
  life().End(JobState::kFailed, "a reason", At());
  EXPECT_EQ(leasing().table().size(), 0u);
  EXPECT_TRUE(life().over());
  EXPECT_EQ(life().Directive(), JobDirective::kEnd);
  EXPECT_THAT(Events("job-ended"), ElementsAre(": failed: a reason"));
}

TEST_F(JobLifeTest, AJobThatWasOverStaysOver) {
  Start();
  MetaRecord meta;
  meta.state = JobState::kDrained;
  life().Resume(meta, now);
  EXPECT_EQ(life().Directive(), JobDirective::kDrain);
  leasing().grace().Begin({}, now + seconds(10));
  WorkerExchangeRequest request = Holding({});
  const LeaseToken earlier(MasterIncarnation(1), 1);
  request.held.push_back({TrainShard(0), earlier, {}, {}, LeasePhase::kComputing, 1});
  std::vector<LeaseToken> lost;
  leasing().TakeHeld(request, kWorker, At(), &lost);
  EXPECT_THAT(lost, ElementsAre(earlier));
  life().Tick(At());
  life().CheckEnd(At());
  EXPECT_EQ(life().state(), JobState::kDrained);
  EXPECT_THAT(Events("job-ended"), IsEmpty());
}

TEST_F(JobLifeTest, ADrainWaitsForTheGracePeriodToo) {
  Start();
  leasing().grace().Begin({"worker-0"}, now + seconds(10));
  life().Drain(At());
  EXPECT_EQ(life().state(), JobState::kDraining) << "a worker may still hold a shard";
  leasing().grace().Settle("worker-0");
  EXPECT_TRUE(leasing().grace().Tick(now));
  life().CheckEnd(At());
  EXPECT_EQ(life().state(), JobState::kDrained);
}

}  // namespace
}  // namespace muster
