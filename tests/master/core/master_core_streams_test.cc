#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::CoreFixture;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;

constexpr DatasetId kClicks{0};

/// One stream "clicks": ranges of 20 offsets, two minibatches each; a partial one after a second.
class StreamsTest : public ::testing::Test, protected CoreFixture {
 protected:
  StreamsTest() {
    DatasetPlan plan{"clicks", DatasetMode::kTrain, 1, 0, 0, 10, nullptr};
    plan.stream =
        StreamPlan{"click-topic",
                   {.minibatch_size = 10, .minibatches_per_shard = 2, .max_delay = seconds(1)},
                   /*open_ranges_max=*/4};
    options.datasets = {plan};
    options.leases.duration = seconds(100);  // who is silent while time passes keeps its leases
  }
  void Look(StreamLook look) {
    look.dataset = kClicks;
    core->SeeStream(look, {now, wall});
    Sync();
  }
  /// A look at topic partition 0.
  void See(uint64_t log_begin, uint64_t stable_end, std::optional<uint64_t> end = {}) {
    Look({.sights = {{TopicPartition(0), log_begin, stable_end, {}, end}}});
  }
  StreamTable::Progress Progress(size_t partition = 0) const {
    return core->ledger().streams().ProgressOf(kClicks).at(partition);
  }
  /// Reports the grants done, each with so many records, while others are held.
  void DoneWith(const std::vector<ShardGrant>& grants, uint64_t records,
                const std::vector<ShardGrant>& others = {}) {
    WorkerExchangeRequest request = Request();
    Hold(grants, &request);
    Hold(others, &request);
    for (const ShardGrant& grant : grants) {
      DoneReport done{grant.shard, grant.token, grant.restore_epoch, {}, {}};
      done.metrics.records = records;
      request.done.push_back(done);
    }
    for (const DoneVerdict& verdict : Exchange(request).verdicts) {
      EXPECT_EQ(verdict.code, DoneCode::kAccepted);
    }
  }
  /// Everything DONE becomes COMMITTED.
  void Commit() {
    Advance(options.snapshot_interval);
    while (Snapshot() > 0) {
    }
  }
  std::vector<std::string> Events(const std::string& kind) const {
    std::vector<std::string> texts;
    for (const auto& [number, event] : core->events().events()) {
      if (event.kind == kind) texts.push_back(event.text);
    }
    return texts;
  }
  static std::vector<std::pair<uint64_t, uint64_t>> Ranges(const std::vector<ShardGrant>& grants) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const ShardGrant& grant : grants) {
      ranges.emplace_back(grant.work.stream->begin, grant.work.stream->end);
    }
    return ranges;
  }
  using Offsets = std::pair<uint64_t, uint64_t>;

  WallTime wall{seconds(1'000)};
};

TEST_F(StreamsTest, WhatATopicHoldsIsCutAndLeasedWithAllThatAWorkerNeeds) {
  Start();
  EXPECT_THAT(Want(5).grants, IsEmpty());
  See(0, 45);
  const std::vector<ShardGrant> grants = Want(5).grants;
  ASSERT_THAT(Ranges(grants), ElementsAre(Offsets{0, 20}, Offsets{20, 40}));
  const ShardWork& work = grants[1].work;
  EXPECT_EQ(work.dataset_name, "clicks");
  EXPECT_EQ(work.stream->topic, "click-topic");
  EXPECT_EQ(work.stream->partition, TopicPartition(0));
  EXPECT_EQ(work.record_count, 20u);
  EXPECT_EQ(work.minibatch_size, 10u);
  EXPECT_EQ(work.first_step, 2u);
  EXPECT_EQ(grants[1].shard, (ShardId{kClicks, EpochIndex(0), ShardIndex(1)}));
  EXPECT_THAT(Events("stream-partitions"), ElementsAre(HasSubstr("has 1 partitions, 45 offsets")));
}

TEST_F(StreamsTest, APartialRangeIsCutAfterItsDelayWithoutALook) {
  Start();
  See(0, 5);
  EXPECT_THAT(Want(1).grants, IsEmpty());
  Advance(seconds(1));
  EXPECT_THAT(Ranges(Want(1).grants), ElementsAre(Offsets{0, 5}));
}

TEST_F(StreamsTest, NoMoreIsCutThanMayBeOpen) {
  Start();
  Register(1);
  See(0, 1'000);
  EXPECT_EQ(Progress().position.cut, 80u);
  const std::vector<ShardGrant> grants = Want(10).grants;
  ASSERT_THAT(grants, SizeIs(4));
  See(0, 1'000);
  EXPECT_EQ(Progress().position.cut, 80u) << "leased ranges are open";
  DoneWith({grants[0], grants[1]}, 20);
  See(0, 1'000);
  EXPECT_EQ(Progress().position.cut, 120u);
}

TEST_F(StreamsTest, TheCommittedPrefixWaitsForTheFirstRange) {
  Start();
  Register(1);
  See(0, 40);
  const std::vector<ShardGrant> grants = Want(2).grants;
  ASSERT_THAT(grants, SizeIs(2));
  DoneWith({grants[1]}, 20, {grants[0]});
  Commit();
  EXPECT_EQ(core->ledger().queue().committed_count(), 1u);
  EXPECT_EQ(Progress().committed, 0u);
  EXPECT_EQ(Progress().lag, 40u);
  DoneWith({grants[0]}, 20);
  Commit();
  EXPECT_EQ(Progress().committed, 40u);
  EXPECT_EQ(Progress().lag, 0u);
  EXPECT_EQ(Progress().oldest, std::nullopt);
  EXPECT_THAT(journal.state().stream_ranges, IsEmpty()) << "COMMITTED ranges take no room";
}

TEST_F(StreamsTest, RecordsAreThoseThatWereRead) {
  Start();
  Register(1);
  See(0, 40);
  const std::vector<ShardGrant> grants = Want(2).grants;
  DoneWith({grants[0]}, 13, {grants[1]});
  DoneWith({grants[1]}, 1'000'000);
  EXPECT_EQ(core->ledger().RecordsDone(kClicks, EpochIndex(0)), 13u + 20u);
  Restart();
  EXPECT_EQ(core->ledger().RecordsDone(kClicks, EpochIndex(0)), 13u + 20u) << "from the journal";
  Commit();
  EXPECT_EQ(core->ledger().RecordsCommitted(kClicks, EpochIndex(0)), 13u + 20u);
}

TEST_F(StreamsTest, ARestartedMasterGoesOnWhereItWas) {
  Start();
  Register(1);
  See(0, 45);
  DoneWith({Want(2).grants[0]}, 20);
  Commit();
  Restart();
  Advance(seconds(4));  // the grace period
  EXPECT_EQ(Progress().committed, 20u);
  EXPECT_EQ(Progress().open_ranges, 2u) << "one was partial when its delay was over";
  const std::vector<ShardGrant> grants = Want(5).grants;
  EXPECT_THAT(Ranges(grants), ElementsAre(Offsets{20, 40}, Offsets{40, 45}));
  See(0, 70);
  EXPECT_THAT(Ranges(Want(5, grants).grants), ElementsAre(Offsets{45, 65}));
}

TEST_F(StreamsTest, AtItsEndTheJobSucceeds) {
  options.datasets.push_back(testing::PlanFor("test", DatasetMode::kEvaluate, 1, 1));
  Start();
  Register(1);
  See(0, 20, 25);
  const std::vector<ShardGrant> first = Want(5).grants;
  ASSERT_THAT(Ranges(first), ElementsAre(Offsets{0, 20}));
  DoneWith(first, 20);
  Commit();
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_THAT(Want(5).grants, IsEmpty()) << "the stream's end is not here";
  EXPECT_FALSE(HasEvent("epoch-committed"));
  See(0, 30, 25);
  const std::vector<ShardGrant> last = Want(5).grants;
  ASSERT_THAT(Ranges(last), ElementsAre(Offsets{20, 25}));
  DoneWith(last, 5);
  Commit();
  EXPECT_TRUE(HasEvent("epoch-committed"));
  const std::vector<ShardGrant> evaluate = Want(5).grants;
  ASSERT_THAT(evaluate, SizeIs(1));
  EXPECT_FALSE(evaluate[0].work.stream.has_value()) << "a file is the shell's";
  EXPECT_THAT(Done(evaluate), ElementsAre(DoneCode::kAccepted));
  EXPECT_EQ(core->state(), JobState::kSucceeded);
}

TEST_F(StreamsTest, AnEmptyTopicThatEndsAtOnceIsASuccess) {
  Start();
  See(0, 0, 0);
  EXPECT_EQ(core->state(), JobState::kSucceeded);
}

TEST_F(StreamsTest, AnIdleStreamAsksForNoSnapshotBeforeItsTime) {
  Start();
  Register(1);
  while (Snapshot() > 0) {
  }
  See(0, 20);
  DoneWith(Want(1).grants, 20);
  EXPECT_EQ(Snapshot(), 0u) << "nothing is left to lease, but more will come";
  Advance(options.snapshot_interval);
  EXPECT_GT(Snapshot(), 0u);
}

TEST_F(StreamsTest, DrainingCutsNoMore) {
  Start();
  Register(1);
  See(0, 20);
  core->Drain(At());
  See(0, 100);
  EXPECT_EQ(Progress().position.cut, 20u);
  Advance(seconds(5));
  EXPECT_EQ(core->state(), JobState::kDrained);
}

TEST_F(StreamsTest, RangesThatRetentionTookAreFailedWithTheirOffsets) {
  Start();
  See(0, 70);
  const std::vector<ShardGrant> held = Want(1).grants;  // [0, 20)
  See(25, 70);
  EXPECT_THAT(Events("shard-failed"),
              ElementsAre(HasSubstr("offsets [20, 25) of topic 'click-topic', partition 0, are "
                                    "gone: retention has left nothing before offset 25")));
  EXPECT_EQ(core->ledger().queue().failed_count(), 1u) << "what is leased may have been read";
  DoneWith(held, 20);
  const ShardId lost{kClicks, EpochIndex(0), ShardIndex(1)};
  ASSERT_NE(core->ledger().FindFailure(lost), nullptr);
  EXPECT_THAT(core->ledger().FindFailure(lost)->reasons, ElementsAre(HasSubstr("[20, 25)")));
  EXPECT_THAT(Ranges(Want(5).grants), ElementsAre(Offsets{40, 60})) << "the job goes on";
  // Tried again, it fails again.
  EXPECT_THAT(core->RetryShards({lost}, At()), IsOk());
  EXPECT_EQ(core->ledger().queue().failed_count(), 0u);
  See(25, 70);
  EXPECT_EQ(core->ledger().queue().failed_count(), 1u);
}

TEST_F(StreamsTest, WhatIsLostHoldsUpNeitherTheGroupNorTheLag) {
  Start();
  Register(1);
  See(0, 40);
  See(30, 60);  // [0, 20) is lost, [20, 40) in part
  EXPECT_EQ(core->ledger().queue().failed_count(), 2u);
  EXPECT_EQ(Progress().committed, 40u);
  EXPECT_EQ(Progress().lost, 40u);
  DoneWith(Want(1).grants, 20);
  Commit();
  EXPECT_EQ(Progress().committed, 60u);
  EXPECT_EQ(Progress().lag, 0u);
  Restart();
  EXPECT_EQ(Progress().committed, 60u);
  EXPECT_EQ(Progress().lost, 40u) << "from the journal";
}

// Its worker may have read them before they went, and comes back with its lease.
TEST_F(StreamsTest, WhatMayBeHeldFromBeforeARestartIsNotLostYet) {
  Start();
  See(0, 20);
  const std::vector<ShardGrant> held = Want(1).grants;
  Restart();
  See(10, 20);
  EXPECT_EQ(core->ledger().queue().failed_count(), 0u);
  DoneWith(held, 20);
  EXPECT_EQ(core->ledger().RecordsDone(kClicks, EpochIndex(0)), 20u);
}

TEST_F(StreamsTest, WhatNobodyHoldsAfterARestartIsLostWhenTheGraceIsOver) {
  options.leases.duration = seconds(1);
  Start();
  See(0, 20);
  Want(1);
  Restart();
  See(10, 20);
  EXPECT_EQ(core->ledger().queue().failed_count(), 0u);
  Advance(options.leases.grace_period + seconds(1));
  See(10, 20);
  EXPECT_EQ(core->ledger().queue().failed_count(), 1u);
}

// A worker may be the first to see that records are gone, and use up the shard's failures.
TEST_F(StreamsTest, WhatAWorkerFoundGoneIsLostToo) {
  options.leases.failures_max = 1;
  Start();
  See(0, 40);
  const ShardGrant held = Want(1).grants.at(0);  // [0, 20)
  WorkerExchangeRequest request = Request();
  request.newest_grant = held.token;
  request.returned = {{held.shard, held.token, "offsets [0, 20) are gone"}};
  Exchange(request);
  EXPECT_EQ(core->ledger().queue().failed_count(), 1u);
  See(0, 40);
  EXPECT_EQ(Progress().lost, 0u) << "the log still has them: it failed for something else";
  EXPECT_EQ(Progress().lag, 40u);
  See(20, 40);
  See(20, 40);
  EXPECT_EQ(Progress().lost, 20u);
  EXPECT_EQ(Progress().lag, 20u);
  EXPECT_EQ(Progress().committed, 20u);
  EXPECT_EQ(core->ledger().queue().failed_count(), 1u);
  EXPECT_THAT(core->ledger().FindFailure(held.shard)->reasons,
              ElementsAre(HasSubstr("[0, 20) are gone"), HasSubstr("before offset 20")));
  Restart();
  See(20, 40);
  EXPECT_EQ(Progress().lost, 20u) << "from the journal";
  EXPECT_THAT(core->RetryShards({held.shard}, At()), IsOk());
  EXPECT_EQ(Progress().lag, 40u);
}

TEST_F(StreamsTest, OffsetsLostBeforeTheyWereCutAreFailedToo) {
  Start();
  See(0, 5);
  See(1'000, 1'020);
  EXPECT_THAT(Events("shard-failed"), ElementsAre(HasSubstr("offsets [0, 1000)")));
  EXPECT_THAT(Ranges(Want(5).grants), ElementsAre(Offsets{1'000, 1'020}));
}

TEST_F(StreamsTest, RetentionIsToldOfBeforeItStrikes) {
  Start();
  See(0, 1'000);
  EXPECT_FALSE(HasEvent("retention-near")) << "a log that begins at its begin loses nothing";
  // By the time that records are kept.
  const auto look = [&](milliseconds retention) {
    Look({.sights = {{TopicPartition(0), 0, 1'000, {}, {}}}, .retention = retention});
  };
  wall += seconds(29);
  look(seconds(60));
  EXPECT_FALSE(HasEvent("retention-near"));
  wall += seconds(1);
  look(seconds(60));
  look(seconds(60));
  EXPECT_THAT(Events("retention-near"), ElementsAre(HasSubstr("keeps records for 60 s")));
  look(seconds(100));
  EXPECT_FALSE(HasEvent("retention-far")) << "it must be well over";
  look(seconds(1'000));
  EXPECT_THAT(Events("retention-far"), SizeIs(1));
}

TEST_F(StreamsTest, ALogThatMovesOnTowardsUncommittedOffsetsIsToldOf) {
  Start();
  Register(1);
  See(0, 80);
  DoneWith(Want(4).grants, 20);
  Commit();
  See(0, 1'000);
  See(1, 1'000);
  EXPECT_THAT(Events("retention-near"), ElementsAre(HasSubstr("offsets from 80 on")));
}

TEST_F(StreamsTest, AGroupThatCannotBeToldIsAnEventAndHoldsUpNothing) {
  Start();
  const std::vector<StreamSight> sights = {{TopicPartition(0), 0, 20, {}, {}}};
  Look({.sights = sights, .group_trouble = "group authorization failed"});
  Look({.sights = sights, .group_trouble = "still so"});
  EXPECT_THAT(Events("group-untold"), ElementsAre(HasSubstr("group authorization failed")));
  EXPECT_THAT(Want(1).grants, SizeIs(1));
  Look({.sights = sights});
  EXPECT_THAT(Events("group-told"), SizeIs(1));
}

TEST_F(StreamsTest, ErrorsAreToldOnceAndTheirEndToo) {
  Start();
  Look({.error = "no broker answers"});
  Look({.error = "still no broker answers"});
  EXPECT_THAT(Events("stream-unreachable"), ElementsAre(HasSubstr("no broker answers")));
  See(0, 20);
  EXPECT_THAT(Events("stream-reachable"), SizeIs(1));
  EXPECT_THAT(Want(1).grants, SizeIs(1));
}

TEST_F(StreamsTest, AnotherClusterIsRefused) {
  Start();
  Look({.cluster = "A", .sights = {{TopicPartition(0), 0, 20, {}, {}}}});
  Restart();
  Look({.cluster = "", .sights = {{TopicPartition(0), 0, 20, {}, {}}}});
  EXPECT_EQ(core->state(), JobState::kRunning) << "not known is not another one";
  Look({.cluster = "B", .sights = {{TopicPartition(0), 0, 20, {}, {}}}});
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("cluster B, the job began on cluster A"));
}

TEST_F(StreamsTest, ATruncatedLogMayComeBack) {
  Start();
  See(0, 40);
  See(0, 30);
  EXPECT_THAT(Events("stream-truncated"), SizeIs(1));
  Advance(seconds(29));
  See(0, 35);
  See(0, 40);
  EXPECT_THAT(Events("stream-grown-again"),
              ElementsAre(HasSubstr("ended at offset 30, reaches what was cut of it (offset 40)")));
  Advance(seconds(29));
  See(0, 39);
  EXPECT_EQ(core->state(), JobState::kRunning);
  Advance(seconds(30));
  See(0, 39);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("or its brokers have lost records"));
}

TEST_F(StreamsTest, ATopicMadeAnewWithFewerPartitionsIsSeenByThat) {
  Start();
  Look({.sights = {{TopicPartition(0), 0, 40, {}, {}}, {TopicPartition(1), 0, 40, {}, {}}}});
  Look({.error = "there is no topic 'click-topic'", .gone = true});
  See(0, 100);
  Advance(seconds(5));
  See(0, 100);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("partition 1"));
}

TEST_F(StreamsTest, ATopicMadeAnewFailsTheJobSoon) {
  Start();
  See(0, 40);
  Look({.error = "there is no topic 'click-topic'", .gone = true});
  See(0, 10);
  EXPECT_EQ(core->state(), JobState::kRunning) << "brokers that just came back may know too little";
  Advance(seconds(5));
  See(0, 10);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("deleted and made anew"));
  EXPECT_THAT(Events("stream-reachable"), ElementsAre(HasSubstr("if it was made anew")));
}

TEST_F(StreamsTest, ANewTopicPartitionIsReadFromItsBegin) {
  Start();
  See(0, 20);
  Look({.sights = {{TopicPartition(0), 0, 20, {}, {}}, {TopicPartition(1), 3, 23, {}, {}}}});
  EXPECT_THAT(Ranges(Want(5).grants), ElementsAre(Offsets{0, 20}, Offsets{3, 23}));
  EXPECT_THAT(Events("stream-partitions"),
              ElementsAre(HasSubstr("has 1 partitions"), HasSubstr("2 partitions, 1 more")));
}

TEST_F(StreamsTest, LooksAtWhatIsNoStreamAreIgnored) {
  options.datasets.push_back(testing::PlanFor("train", DatasetMode::kTrain, 1, 1));
  Start();
  core->SeeStream({.dataset = DatasetId(1), .sights = {{TopicPartition(0), 0, 20, {}, {}}}}, At());
  core->SeeStream({.dataset = DatasetId(9), .sights = {{TopicPartition(0), 0, 20, {}, {}}}}, At());
  EXPECT_THAT(Want(5).grants, SizeIs(1));
}

TEST_F(StreamsTest, RangesThatOverlapOrWereNeverCutAreDamage) {
  Start();
  See(0, 40);
  EXPECT_THAT(MasterCore::CheckFits(options, journal.state()), IsOk());
  DurableState overlap = journal.state();
  overlap.stream_ranges.rbegin()->second.begin -= 1;
  EXPECT_EQ(MasterCore::CheckFits(options, overlap).code(), absl::StatusCode::kDataLoss);
  DurableState beyond = journal.state();
  beyond.stream_ranges.rbegin()->second.end += 1;
  EXPECT_EQ(MasterCore::CheckFits(options, beyond).code(), absl::StatusCode::kDataLoss);
  DurableState missing = journal.state();
  missing.stream_ranges.erase(missing.stream_ranges.begin());
  EXPECT_EQ(MasterCore::CheckFits(options, missing).code(), absl::StatusCode::kDataLoss);
}

TEST_F(StreamsTest, AJournalWithOffsetsOfAFileIsRefused) {
  Start();
  See(0, 20);
  options.datasets = {testing::PlanFor("train", DatasetMode::kTrain, 1, 4)};
  EXPECT_EQ(MasterCore::CheckFits(options, journal.state()).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster
