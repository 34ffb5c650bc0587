#include "master/core/streams/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using std::chrono::seconds;
using testing::kCheckSet;
using testing::kTrainSet;
using testing::PartsFixture;
using ::testing::SizeIs;
using testing::TrainShard;

class StreamsPartTest : public ::testing::Test, protected PartsFixture {
 protected:
  StreamsPartTest() {
    options.datasets[0].shards = options.datasets[0].records = 0;
    options.datasets[0].stream =
        StreamPlan{"clicks", {.minibatch_size = 5, .minibatches_per_shard = 2}};
  }
  void See(uint64_t log_begin, uint64_t stable_end) {
    streams().See(
        {.dataset = kTrainSet, .partitions = {{TopicPartition(0), log_begin, stable_end}}}, At());
  }
};

TEST_F(StreamsPartTest, ALookThatFailsIsSaidOnceForEachThingThatIsWrong) {
  Start();
  const StreamLook look{.dataset = kTrainSet, .error = "no broker", .group_trouble = "no group"};
  streams().See(look, At());
  streams().See(look, At());
  EXPECT_THAT(Events("stream-unreachable"), SizeIs(1));
  EXPECT_THAT(Events("group-untold"), SizeIs(1));
  EXPECT_EQ(streams().ToldOf(kTrainSet)->error, "no broker");
  EXPECT_EQ(streams().ToldOf(kCheckSet), nullptr);
}

TEST_F(StreamsPartTest, ARangeOnLeaseIsNotLost) {
  Start();
  See(0, 20);
  ASSERT_EQ(Grant(1).at(0).shard, TrainShard(0));
  See(15, 20);
  EXPECT_EQ(books().ledger.queue().StateOf(TrainShard(0)), ShardState::kLeased);
  EXPECT_EQ(books().ledger.queue().StateOf(TrainShard(1)), ShardState::kFailed);
  EXPECT_THAT(Events("shard-failed"), SizeIs(1));
}

TEST_F(StreamsPartTest, NothingIsCutWhenTheJobDrains) {
  Start();
  See(0, 20);
  Grant(2);
  life().Drain(At());
  See(0, 40);
  Pass(seconds(60));
  streams().Tick(At());
  EXPECT_EQ(books().ledger.queue().shard_count(), 3u) << "two ranges, and the evaluation";
}

TEST_F(StreamsPartTest, DelaysOfAProcessCountOnce) {
  Start();
  DatasetDelays told{.dataset = kTrainSet, .delays = {}};
  for (int i = 0; i < 3; ++i) told.delays.Add(seconds(1));
  streams().TakeDelays(told, nullptr, now);
  const DelayHistogram before = told.delays;
  for (int i = 0; i < 2; ++i) told.delays.Add(seconds(1));
  streams().TakeDelays(told, &before, now);
  const StreamDelays& delays = streams().ToldOf(kTrainSet)->delays;
  EXPECT_EQ(delays.total().count(), 5u);
  EXPECT_EQ(delays.Recent(now).count(), 2u) << "the first may be of hours";
}

}  // namespace
}  // namespace muster
