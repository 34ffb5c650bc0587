#include "master/core/streams/stream_check.h"

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr DatasetId kClicks(0);

ShardId CheckedShard(uint64_t index) {
  return {kClicks, EpochIndex(0), ShardIndex(index)};
}

/// Three ranges of a topic partition: the first is COMMITTED, the others are open.
class StreamCheckTest : public ::testing::Test {
 protected:
  StreamCheckTest() {
    stream_.dataset = kClicks;
    stream_.next_shard = ShardIndex(3);
    state_.epochs[{kClicks, EpochIndex(0)}].committed.Add(0);
    state_.stream_positions[{kClicks, TopicPartition(0)}] = {TopicPartition(0), 0, 30, {}};
    state_.stream_shards[CheckedShard(1)] = {{{TopicPartition(0), 10, 20}}, 0, {}};
    state_.stream_shards[CheckedShard(2)] = {{{TopicPartition(0), 20, 30}}, 0, {}};
  }
  StreamRecord stream_;
  DurableState state_;
};

TEST_F(StreamCheckTest, EveryShardHasItsRangesOrIsCommitted) {
  EXPECT_THAT(CheckStreamComplete(stream_, state_), IsOk());
  state_.stream_shards.erase(CheckedShard(2));
  EXPECT_THAT(CheckStreamComplete(stream_, state_),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("offsets for 1 others")));
}

TEST_F(StreamCheckTest, RangesLieInWhatWasCutAndApart) {
  EXPECT_THAT(CheckStreamShards(state_), IsOk());
  state_.stream_shards[CheckedShard(2)].ranges[0].end = 31;
  EXPECT_THAT(CheckStreamShards(state_),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("never cut into shards")));
  state_.stream_shards[CheckedShard(2)] = {{{TopicPartition(0), 19, 30}}, 0, {}};
  EXPECT_THAT(CheckStreamShards(state_),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("another shard has some")));
}

}  // namespace
}  // namespace muster
