#include "master/core/durable_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;

// Every journal must agree with this.
TEST(DurableStateTest, RecordsReplaceTheFormerOfTheirKeyAndErasuresTakeBothEnds) {
  DurableState state;
  const ShardId shard{DatasetId(0), EpochIndex(1), ShardIndex(2)};
  for (uint64_t seq = 1; seq <= 5; ++seq) {
    Apply(DoneRecord{{DoneSeq(seq), shard, {}}, "worker-0", {}}, &state);
    Apply(EventRecord{.sequence = seq}, &state);
  }
  Apply(EraseDone{DoneSeq(2), DoneSeq(4)}, &state);
  EXPECT_THAT(state.done, ElementsAre(Key(DoneSeq(1)), Key(DoneSeq(5))));
  Apply(EraseEvents{3}, &state);
  EXPECT_THAT(state.events, ElementsAre(Key(4), Key(5)));

  for (const uint32_t failures : {1u, 2u}) {
    FailureRecord failure;
    failure.shard = shard;
    failure.failures = failures;
    Apply(failure, &state);
    NodeRecord node;
    node.name = "worker-0";
    node.pid = failures;
    Apply(node, &state);
    EpochRecord epoch;
    epoch.dataset = shard.dataset;
    epoch.epoch = shard.epoch;
    epoch.records_committed = failures;
    Apply(epoch, &state);
    Apply(StreamShardRecord{shard, {{{TopicPartition(0), 0, failures}}, 0, {}}}, &state);
    Apply(PartitionRecord{PartitionId(3), {.owner = ServerId(failures)}, {}}, &state);
    Apply(TableSpec{.id = TableId(4), .dim = failures}, &state);
    Apply(StreamRecord{shard.dataset, ShardIndex(failures), 0, ""}, &state);
    Apply(StreamPositionRecord{shard.dataset, {TopicPartition(6), failures, failures, {}}}, &state);
    MetaRecord meta;
    meta.reason = std::to_string(failures);
    Apply(meta, &state);
  }
  EXPECT_EQ(state.failures.at(shard).failures, 2u);
  EXPECT_EQ(state.nodes.at("worker-0").pid, 2u);
  EXPECT_EQ(state.epochs.at({shard.dataset, shard.epoch}).records_committed, 2u);
  EXPECT_EQ(state.stream_shards.at(shard).offsets(), 2u);
  EXPECT_EQ(state.partitions.at(PartitionId(3)).entry.owner, ServerId(2));
  EXPECT_EQ(state.tables.at(TableId(4)).dim, 2u);
  EXPECT_EQ(state.streams.at(shard.dataset).next_shard, ShardIndex(2));
  EXPECT_EQ(state.stream_positions.at({shard.dataset, TopicPartition(6)}).cut, 2u);
  EXPECT_EQ(state.meta->reason, "2");
  Apply(EraseFailure{shard}, &state);
  Apply(EraseNode{"worker-0"}, &state);
  Apply(EraseStreamShard{shard}, &state);
  EXPECT_THAT(state.failures, IsEmpty());
  EXPECT_THAT(state.nodes, IsEmpty());
  EXPECT_THAT(state.stream_shards, IsEmpty());
}

}  // namespace
}  // namespace muster
