#include "master/core/streams/stream_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <variant>
#include <vector>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr DatasetId kTopicSet{0};
constexpr TopicPartition kPartition{3};

ShardId Shard(uint64_t index) {
  return {kTopicSet, EpochIndex(0), ShardIndex(index)};
}

/// A stream with ranges of 10 offsets, cut as soon as there are so many.
class StreamTableTest : public ::testing::Test {
 protected:
  StreamTableTest() {
    plan_.resize(1);
    plan_[0].stream = StreamPlan{"topic", {.minibatch_size = 5, .minibatches_per_shard = 2}};
    Restart();
  }
  /// Journals the collected changes, and begins a new table with them.
  void Restart() {
    std::vector<Mutation> mutations;
    if (table_.has_value()) table_->Collect(&mutations);
    for (const Mutation& mutation : mutations) Apply(mutation, &journal_);
    table_.emplace(plan_, journal_);
  }
  void See(uint64_t log_begin, uint64_t stable_end) {
    const std::vector<PartitionLook> partition_looks = {{kPartition, log_begin, stable_end}};
    table_->See(kTopicSet, partition_looks, TimePoint(), WallTime());
  }
  std::vector<StreamTable::NewShard> Cut(uint64_t shards_max = 100) {
    return table_->CutDue(kTopicSet, shards_max, TimePoint());
  }
  StreamTable::Progress Progress() const { return table_->ProgressOf(kTopicSet).at(0); }

  std::vector<DatasetPlan> plan_;
  DurableState journal_;
  std::optional<StreamTable> table_;
};

TEST_F(StreamTableTest, ShardsGoOnWithTheNextNumberAfterARestart) {
  See(0, 35);
  EXPECT_THAT(Cut(2), SizeIs(2));
  Restart();
  EXPECT_EQ(table_->Find(Shard(1))->ranges[0].begin, 10u);
  EXPECT_EQ(table_->Find(Shard(1))->first_step, 2u);
  EXPECT_FALSE(Progress().seen) << "there was no look yet";
  See(0, 35);
  const std::vector<StreamTable::NewShard> cut = Cut();
  ASSERT_THAT(cut, SizeIs(1));
  EXPECT_EQ(cut[0].shard, Shard(2));
  EXPECT_EQ(cut[0].cut.ranges[0].begin, 20u);
  EXPECT_EQ(cut[0].cut.first_step, 4u);
}

TEST_F(StreamTableTest, WhatIsCommittedIsForgottenAndAsOfNow) {
  See(0, 20);
  Cut();
  table_->OnCommitted(Shard(0));
  EXPECT_EQ(table_->Find(Shard(0)), nullptr);
  EXPECT_EQ(Progress().committed, 10u);
  EXPECT_EQ(Progress().open_ranges, 1u);
  Restart();
  EXPECT_THAT(table_->ShardsOf(kTopicSet), SizeIs(1));
  EXPECT_EQ(Progress().committed, 10u);
}

TEST_F(StreamTableTest, WhatIsLostHoldsNothingUpUntilItIsTriedAgain) {
  See(0, 20);
  Cut();
  See(5, 20);
  EXPECT_THAT(table_->BehindLog(kTopicSet), ElementsAre(Shard(0)));
  table_->OnLost(Shard(0));
  table_->OnLost(Shard(0));
  EXPECT_EQ(Progress().lost, 10u) << "once";
  EXPECT_EQ(Progress().committed, 10u);
  EXPECT_THAT(table_->BehindLog(kTopicSet), IsEmpty());
  table_->OnRetried(Shard(0));
  table_->OnRetried(Shard(0));
  EXPECT_EQ(Progress().lost, 0u);
  EXPECT_EQ(Progress().committed, 0u);
  EXPECT_THAT(table_->BehindLog(kTopicSet), ElementsAre(Shard(0)));
}

TEST_F(StreamTableTest, ALossThatIsJournaledIsOneAfterARestart) {
  See(0, 20);
  Cut();
  journal_.failures[Shard(1)] = {.shard = Shard(1), .failed = true, .lost = true};
  Restart();
  EXPECT_EQ(Progress().lost, 10u);
  EXPECT_EQ(Progress().open_ranges, 1u);
  journal_.failures[Shard(1)].failed = false;  // it was tried again
  Restart();
  EXPECT_EQ(Progress().lost, 0u);
}

TEST_F(StreamTableTest, AShardOfSeveralPartitionsIsOpenInEachOrLostInEach) {
  const TopicPartition other(4);
  const auto see = [&](uint64_t log_begin, TimePoint now) {
    const std::vector<PartitionLook> looks = {{kPartition, log_begin, 4}, {other, 0, 6}};
    table_->See(kTopicSet, looks, now, WallTime());
  };
  const TimePoint later(plan_[0].stream->cut.max_delay);
  see(0, TimePoint());
  ASSERT_THAT(table_->CutDue(kTopicSet, 100, later), SizeIs(1));
  Restart();
  EXPECT_THAT(table_->Find(Shard(0))->ranges,
              ElementsAre(OffsetRange{kPartition, 0, 4}, OffsetRange{other, 0, 6}));
  see(3, later);
  EXPECT_THAT(table_->BehindLog(kTopicSet), ElementsAre(Shard(0)));
  table_->OnLost(Shard(0));
  EXPECT_TRUE(table_->IsLost(Shard(0)));
  std::vector<StreamTable::Progress> progress = table_->ProgressOf(kTopicSet);
  EXPECT_EQ(progress[0].lost, 4u);
  EXPECT_EQ(progress[1].lost, 6u);
  EXPECT_EQ(progress[1].committed, 6u);
  table_->OnRetried(Shard(0));
  progress = table_->ProgressOf(kTopicSet);
  EXPECT_EQ(progress[0].lost + progress[1].lost, 0u);
  EXPECT_EQ(progress[1].committed, 0u);
  table_->OnCommitted(Shard(0));
  progress = table_->ProgressOf(kTopicSet);
  EXPECT_EQ(progress[0].committed, 4u);
  EXPECT_EQ(progress[1].committed, 6u);
}

TEST_F(StreamTableTest, OnlyChangesAreJournaled) {
  See(0, 5);
  Cut();
  std::vector<Mutation> mutations;
  table_->Collect(&mutations);
  mutations.clear();
  table_->Collect(&mutations);
  EXPECT_THAT(mutations, IsEmpty());
  table_->SetCluster(kTopicSet, "cluster-1");
  table_->Collect(&mutations);
  ASSERT_THAT(mutations, SizeIs(1));
  EXPECT_EQ(std::get<StreamRecord>(mutations[0]).cluster, "cluster-1");
}

}  // namespace
}  // namespace muster
