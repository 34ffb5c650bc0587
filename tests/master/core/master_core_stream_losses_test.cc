// Losses of a topic: retention, logs that shrink, topics that are created again.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/master/core/stream_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::kClicks;
using ::testing::SizeIs;
using testing::StreamsTest;

constexpr char kNoTopic[] = "there is no topic 'click-topic'";

TEST_F(StreamsTest, RangesThatRetentionTookAreFailedWithTheirOffsets) {
  Start();
  See(0, 70);
  const std::vector<ShardGrant> held = Want(1).grants;  // [0, 20)
  See(25, 70);
  EXPECT_THAT(Events("shard-failed"),
              ElementsAre(HasSubstr("offsets [20, 25) of topic 'click-topic', partition 0, are "
                                    "gone: its log begins at offset 25, because retention or a "
                                    "user has deleted records")));
  EXPECT_EQ(core->ledger().queue().failed_count(), 1u) << "what is leased may have been read";
  DoneWith(held, 20);
  const ShardId lost{kClicks, EpochIndex(0), ShardIndex(1)};
  ASSERT_NE(core->ledger().FindFailure(lost), nullptr);
  EXPECT_THAT(core->ledger().FindFailure(lost)->reasons, ElementsAre(HasSubstr("[20, 25)")));
  EXPECT_THAT(Ranges(Want(5).grants), ElementsAre(Offsets{40, 60})) << "the job continues";
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
  request.returned = {{held.shard, held.token, true, "offsets [0, 20) are gone"}};
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
              ElementsAre(HasSubstr("[0, 20) are gone"), HasSubstr("begins at offset 20")));
  EXPECT_THAT(Events("shard-failed"), SizeIs(1)) << "it is FAILED once";
  EXPECT_THAT(Events("shard-lost"), SizeIs(1));
  Restart();
  See(20, 40);
  EXPECT_EQ(Progress().lost, 20u) << "from the journal";
  EXPECT_THAT(core->RetryShards({held.shard}, At()), IsOk());
  EXPECT_EQ(Progress().lag, 40u);
  EXPECT_EQ(Progress().lost, 0u);
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
    Look({.partitions = {{TopicPartition(0), 0, 1'000, {}, {}}}, .retention = retention});
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

TEST_F(StreamsTest, TheLongestRetentionThatCanBeSetIsNeverNear) {
  Start();
  const StreamLook look{.partitions = {{TopicPartition(0), 0, 1'000, {}, {}}},
                        .retention = milliseconds::max()};
  Look(look);
  wall += std::chrono::years(50);
  Look(look);
  EXPECT_THAT(Events("retention-near"), IsEmpty());
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

TEST_F(StreamsTest, RetentionIsNearAtATenthOfTheLogAndFarAtTwice) {
  Start();
  Register(1);
  const auto train = [&] {
    DoneWith(Want(4).grants, 20);
    Commit();
  };
  See(0, 80);
  train();
  See(0, 250);  // cut to 160
  See(60, 260);
  EXPECT_THAT(Events("retention-near"), IsEmpty()) << "20 of 200";
  See(60, 261);
  EXPECT_THAT(Events("retention-near"), SizeIs(1));
  train();
  See(128, 288);
  EXPECT_THAT(Events("retention-far"), SizeIs(1)) << "32 of 160";
}

TEST_F(StreamsTest, WhileOneLogIsTruncatedTheOthersAreCut) {
  Start();
  Look({.partitions = {{TopicPartition(0), 0, 40, {}, {}}, {TopicPartition(1), 0, 20, {}, {}}}});
  Look({.partitions = {{TopicPartition(0), 0, 30, {}, {}}, {TopicPartition(1), 0, 40, {}, {}}}});
  EXPECT_THAT(Events("stream-truncated"), SizeIs(1));
  EXPECT_EQ(Progress(1).position.cut, 40u);
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
              ElementsAre(HasSubstr("ended at offset 30, but reaches offset 40 again")));
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
  Look({.partitions = {{TopicPartition(0), 0, 40, {}, {}}, {TopicPartition(1), 0, 40, {}, {}}}});
  FindNone();
  See(0, 100);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("partition 1"));
}

// It may be filled again by the next look.
TEST_F(StreamsTest, ATopicMadeAnewFailsTheJobAtOnce) {
  Start();
  See(0, 40);
  FindNone();
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_THAT(Events("stream-gone"), ElementsAre(HasSubstr("there is no topic 'click-topic'")));
  See(0, 10);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("deleted and created again"));
  EXPECT_THAT(Events("stream-reachable"), ElementsAre(HasSubstr("If it was created again")));
  EXPECT_THAT(Events("stream-truncated"), IsEmpty()) << "it says how long the job waits";
}

// While leaders are elected brokers say so of topics that are there, and know logs too short.
TEST_F(StreamsTest, AFewLooksThatFindNoTopicAreNoProofThatItWasDeleted) {
  Start();
  See(0, 40);
  const StreamLook none{.error = kNoTopic, .gone = true};
  for (int i = 0; i < 10; ++i) Look(none);  // all in one moment
  See(0, 30);
  EXPECT_EQ(core->state(), JobState::kRunning);
  See(0, 40);
  Look(none);
  Advance(seconds(10));
  Look(none);
  See(0, 30);
  EXPECT_EQ(core->state(), JobState::kRunning) << "two of them, however far apart";
  Look(none);
  Look({.error = "no broker answers"});
  See(0, 40);
  EXPECT_EQ(core->state(), JobState::kRunning) << "one that finds it makes an end of the count";
  EXPECT_THAT(Events("stream-gone"), IsEmpty());
  EXPECT_THAT(Events("stream-reachable").back(), HasSubstr("If it was created again"));
}

TEST_F(StreamsTest, LooksWithoutAnAnswerSayNothingOfATopicThatIsGone) {
  Start();
  See(0, 40);
  Look({.error = kNoTopic, .gone = true});
  Advance(seconds(1));
  Look({.error = "no broker answers"});
  Look({.error = kNoTopic, .gone = true});
  Advance(seconds(1));
  Look({.error = kNoTopic, .gone = true});
  EXPECT_THAT(Events("stream-gone"), SizeIs(1));
  See(0, 10);
  EXPECT_EQ(core->state(), JobState::kFailed);
}

// A leader that was just elected may not know yet how long its log is.
TEST_F(StreamsTest, AStartBeyondTheEndOfTheLogFailsTheJobWhenItStaysSo) {
  Start();
  const StreamLook beyond{.error = "kafka.start names offset 7", .beyond = true};
  Look(beyond);
  Advance(seconds(9));
  Look(beyond);
  EXPECT_EQ(core->state(), JobState::kRunning);
  See(0, 40);
  Look(beyond);
  Advance(seconds(9));
  Look(beyond);
  EXPECT_EQ(core->state(), JobState::kRunning) << "it counts from 0 again";
  Advance(seconds(1));
  Look(beyond);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("kafka.start names offset 7"));
}

}  // namespace
}  // namespace muster
