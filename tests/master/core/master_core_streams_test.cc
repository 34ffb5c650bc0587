#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/master/core/stream_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::kClicks;
using ::testing::SizeIs;
using testing::StreamsTest;

TEST_F(StreamsTest, WhatATopicHoldsIsCutAndLeasedWithAllThatAWorkerNeeds) {
  Start();
  EXPECT_THAT(Want(5).grants, IsEmpty());
  See(0, 45);
  const std::vector<ShardGrant> grants = Want(5).grants;
  ASSERT_THAT(Ranges(grants), ElementsAre(Offsets{0, 20}, Offsets{20, 40}));
  const ShardWork& work = grants[1].work;
  EXPECT_EQ(work.dataset_name, "clicks");
  EXPECT_EQ(work.stream->topic, "click-topic");
  EXPECT_EQ(work.stream->ranges[0].partition, TopicPartition(0));
  EXPECT_EQ(work.record_count, 20u);
  EXPECT_EQ(work.minibatch_size, 10u);
  EXPECT_EQ(work.first_step, 2u);
  EXPECT_EQ(grants[1].shard, (ShardId{kClicks, EpochIndex(0), ShardIndex(1)}));
  EXPECT_THAT(Events("stream-partitions"), ElementsAre(HasSubstr("has 1 partition; 45 offsets")));
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
  EXPECT_THAT(journal.state().stream_shards, IsEmpty()) << "COMMITTED ranges take no room";
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
  const std::vector<ShardGrant> next = Want(5, grants).grants;
  EXPECT_THAT(Ranges(next), ElementsAre(Offsets{45, 65}));
  EXPECT_EQ(next[0].work.first_step, 5u) << "schedules go on, they do not start again";
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
  EXPECT_EQ(core->state(), JobState::kRunning);
  Commit();
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

TEST_F(StreamsTest, AGroupThatCannotBeToldIsAnEventAndHoldsUpNothing) {
  Start();
  const std::vector<PartitionLook> partition_looks = {{TopicPartition(0), 0, 20, {}, {}}};
  Look({.partitions = partition_looks, .group_trouble = "group authorization failed"});
  Look({.partitions = partition_looks, .group_trouble = "still so"});
  EXPECT_THAT(Events("group-untold"), ElementsAre(HasSubstr("group authorization failed")));
  EXPECT_THAT(Want(1).grants, SizeIs(1));
  Look({.partitions = partition_looks});
  EXPECT_THAT(Events("group-told"), SizeIs(1));
}

TEST_F(StreamsTest, ATopicForRejectedRecordsThatThereIsNotIsAnEvent) {
  Start();
  const std::vector<PartitionLook> partition_looks = {{TopicPartition(0), 0, 20, {}, {}}};
  Look({.partitions = partition_looks, .dead_letter_trouble = "topic 'dead': unknown"});
  Look({.partitions = partition_looks, .dead_letter_trouble = "topic 'dead': unknown"});
  EXPECT_THAT(Events("dead-letters-held"), ElementsAre(HasSubstr("topic 'dead': unknown")));
  EXPECT_EQ(core->ToldOf(kClicks)->dead_letter_trouble, "topic 'dead': unknown");
  EXPECT_THAT(Want(1).grants, SizeIs(1));
  Look({.partitions = partition_looks});
  EXPECT_THAT(Events("dead-letters-writable"), SizeIs(1));
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

TEST_F(StreamsTest, WhatNoOtherLookWillChangeIsNotToldAsSomethingThatPasses) {
  Start();
  Look({.error = "the topic has a partition 1", .fatal = true});
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("the topic has a partition 1"));
  EXPECT_THAT(Events("stream-unreachable"), IsEmpty());
}

// It began at the end of a log, and nothing has come since.
TEST_F(StreamsTest, ALogThatEndsBeforeTheDatasetBeginsIsTruncated) {
  Start();
  Look({.partitions = {{TopicPartition(0), 0, 40, 60, {}, 60}}});
  Advance(seconds(60));
  Look({.partitions = {{TopicPartition(0), 0, 40, {}, {}, 60}}});
  EXPECT_FALSE(HasEvent("stream-truncated")) << "a transaction holds back what comes before it";
  Look({.partitions = {{TopicPartition(0), 0, 40, {}, {}, 59}}});
  EXPECT_THAT(Events("stream-truncated"),
              ElementsAre(AllOf(HasSubstr("ends before offset 60, where the dataset begins"),
                                HasSubstr("or kafka.start names an offset that it never had"))));
  Advance(seconds(30));
  Look({.partitions = {{TopicPartition(0), 0, 40, {}, {}, 59}}});
  EXPECT_EQ(core->state(), JobState::kFailed);
}

TEST_F(StreamsTest, WhatIsNotSeenHasNoLag) {
  Start();
  See(0, 40);
  EXPECT_EQ(Progress().lag, 40u);
  Restart();
  EXPECT_EQ(Progress().lag, std::nullopt);
  EXPECT_EQ(Progress().held_back, std::nullopt);
  See(0, 40);
  EXPECT_EQ(Progress().lag, 40u);
}

TEST_F(StreamsTest, WhatOpenTransactionsHoldBackIsCountedUpToTheEnd) {
  Start();
  Look({.partitions = {{TopicPartition(0), 0, 100, {}, {}, 175}}});
  EXPECT_EQ(Progress().lag, 100u);
  EXPECT_EQ(Progress().held_back, 75u);
  Look({.partitions = {{TopicPartition(0), 0, 100, {}, 150, 175}}});
  EXPECT_EQ(Progress().held_back, 50u);
  Look({.partitions = {{TopicPartition(0), 0, 175, {}, {}, 175}}});
  EXPECT_EQ(Progress().held_back, 0u);
}

TEST_F(StreamsTest, DelaysThatWorkersTellAreSummedOnce) {
  Start();
  DelayHistogram told;
  const auto tell = [&](uint64_t incarnation) {
    WorkerExchangeRequest request = Request("worker-0", incarnation);
    request.delays = {{kClicks, told}, {DatasetId(9), told}};
    Exchange(request);
  };
  EXPECT_EQ(core->ToldOf(kClicks), nullptr) << "nothing is known yet";
  told.Add(std::chrono::milliseconds(5));
  tell(7);
  tell(7);
  EXPECT_EQ(core->ToldOf(kClicks)->delays.total(), told);
  EXPECT_EQ(core->ToldOf(kClicks)->delays.Recent(now).count(), 0u) << "it may be of hours ago";
  told.Add(std::chrono::milliseconds(9));
  tell(7);
  EXPECT_EQ(core->ToldOf(kClicks)->delays.total(), told);
  EXPECT_EQ(core->ToldOf(kClicks)->delays.Recent(now).count(), 1u);
  tell(8);
  EXPECT_EQ(core->ToldOf(kClicks)->delays.total().count(), 4u) << "another process has its own";
  EXPECT_EQ(core->ToldOf(DatasetId(9)), nullptr);
}

TEST_F(StreamsTest, AnotherClusterIsRefused) {
  Start();
  Look({.cluster = "A", .partitions = {{TopicPartition(0), 0, 20, {}, {}}}});
  Restart();
  Look({.cluster = "", .partitions = {{TopicPartition(0), 0, 20, {}, {}}}});
  EXPECT_EQ(core->state(), JobState::kRunning) << "not known is not another one";
  Look({.cluster = "B", .partitions = {{TopicPartition(0), 0, 20, {}, {}}}});
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("cluster B, but the job began on cluster A"));
}

TEST_F(StreamsTest, ANewTopicPartitionIsReadFromItsBegin) {
  Start();
  See(0, 20);
  Look({.partitions = {{TopicPartition(0), 0, 20, {}, {}}, {TopicPartition(1), 3, 23, {}, {}}}});
  EXPECT_THAT(Ranges(Want(5).grants), ElementsAre(Offsets{0, 20}, Offsets{3, 23}));
  EXPECT_THAT(Events("stream-partitions"),
              ElementsAre(HasSubstr("has 1 partition"), HasSubstr("2 partitions, 1 more")));
}

TEST_F(StreamsTest, LooksAtWhatIsNoStreamAreIgnored) {
  options.datasets.push_back(testing::PlanFor("train", DatasetMode::kTrain, 1, 1));
  Start();
  core->TakeLook({.dataset = DatasetId(1), .partitions = {{TopicPartition(0), 0, 20, {}, {}}}},
                 At());
  core->TakeLook({.dataset = DatasetId(9), .partitions = {{TopicPartition(0), 0, 20, {}, {}}}},
                 At());
  EXPECT_THAT(Want(5).grants, SizeIs(1));
}

TEST_F(StreamsTest, RangesThatOverlapOrWereNeverCutAreDamage) {
  Start();
  See(0, 40);
  EXPECT_THAT(MasterCore::CheckFits(options, journal.state()), IsOk());
  DurableState overlap = journal.state();
  overlap.stream_shards.rbegin()->second.ranges[0].begin -= 1;
  EXPECT_EQ(MasterCore::CheckFits(options, overlap).code(), absl::StatusCode::kDataLoss);
  DurableState beyond = journal.state();
  beyond.stream_shards.rbegin()->second.ranges[0].end += 1;
  EXPECT_EQ(MasterCore::CheckFits(options, beyond).code(), absl::StatusCode::kDataLoss);
  DurableState missing = journal.state();
  missing.stream_shards.erase(missing.stream_shards.begin());
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
