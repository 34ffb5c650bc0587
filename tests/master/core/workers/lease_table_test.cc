#include "master/core/workers/lease_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

LeaseToken TokenNumber(uint64_t count) {
  return LeaseToken(MasterIncarnation(1), count);
}

TimePoint Second(int second) {
  return TimePoint(seconds(second));
}

/// Lease `count` is on shard `count`.
HeldLease HeldLeaseOf(uint64_t count, LeasePhase phase, uint32_t minibatches, uint32_t run = 0) {
  return {{DatasetId(0), EpochIndex(0), ShardIndex(count)},
          TokenNumber(count),
          RestoreEpoch(1),
          RunNumber(run),
          phase,
          minibatches};
}

LeaseTable TableOf(std::initializer_list<HeldLease> held) {
  LeaseTable table;
  for (const HeldLease& one : held) {
    table.Add({one.shard,
               one.token,
               {"worker-0", 1},
               one.restore_epoch,
               false,
               Second(0),
               one.phase,
               one.minibatches_started});
  }
  return table;
}

TEST(LeaseTableTest, AnotherRunIsProgressThoughItsFiguresAreTheSame) {
  LeaseTable table = TableOf({HeldLeaseOf(1, LeasePhase::kComputing, 1)});
  EXPECT_FALSE(table.Update(HeldLeaseOf(1, LeasePhase::kComputing, 1), Second(5)));
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(5)), ElementsAre(TokenNumber(1)));
  EXPECT_TRUE(table.Update(HeldLeaseOf(1, LeasePhase::kComputing, 1, /*run=*/1), Second(6)));
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(5)), IsEmpty());
  EXPECT_EQ(table.Find(TokenNumber(1))->run, RunNumber(1));
}

TEST(LeaseTableTest, ARestoreHoldsUpWhatIsPushedAndNotWhatIsComputed) {
  LeaseTable table =
      TableOf({HeldLeaseOf(1, LeasePhase::kComputing, 1), HeldLeaseOf(2, LeasePhase::kPushing, 2)});
  table.OnRestored(Second(7));
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(6)), ElementsAre(TokenNumber(1)));
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(7)),
              ElementsAre(TokenNumber(1), TokenNumber(2)));
}

TEST(LeaseTableTest, LeasesAreFoundByTokenShardAndWorkerUntilTheyEnd) {
  LeaseTable table;
  const auto add = [&](uint64_t count, const WorkerKey& worker, bool evaluate) {
    const HeldLease held = HeldLeaseOf(count, LeasePhase::kQueued, 0);
    table.Add({held.shard, held.token, worker, held.restore_epoch, evaluate, Second(0)});
    return held.shard;
  };
  EXPECT_EQ(table.OldestTrain(), std::nullopt);
  const ShardId evaluated = add(1, {"a", 2}, /*evaluate=*/true);
  const ShardId second = add(2, {"a", 2}, false);
  add(4, {"a", 3}, false);
  add(3, {"b", 1}, false);
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(table.train_count(), 3u);
  EXPECT_EQ(table.OldestTrain(), TokenNumber(2)) << "an evaluation holds no floor";
  EXPECT_THAT(table.TokensOf({"a", 2}), ElementsAre(TokenNumber(1), TokenNumber(2)));
  EXPECT_EQ(table.CountOf({"a", 2}), 2u);
  EXPECT_EQ(table.CountOf({"a", 1}), 0u);
  EXPECT_THAT(table.TokensOf({"a", 1}), IsEmpty());
  for (const char* name : {"a", "b"}) EXPECT_TRUE(table.Holds(name));
  for (const char* name : {"", "aa", "c"}) EXPECT_FALSE(table.Holds(name)) << name;
  EXPECT_EQ(table.FindShard(second)->token, TokenNumber(2));
  EXPECT_EQ(table.Find(TokenNumber(9)), nullptr);

  EXPECT_EQ(table.Remove(TokenNumber(2)).shard, second);
  EXPECT_EQ(table.Find(TokenNumber(2)), nullptr);
  EXPECT_EQ(table.FindShard(second), nullptr);
  EXPECT_EQ(table.OldestTrain(), TokenNumber(3));
  EXPECT_EQ(table.train_count(), 2u);
  EXPECT_THAT(table.TokensOf({"a", 2}), ElementsAre(TokenNumber(1)));
  table.Remove(TokenNumber(1));
  table.Remove(TokenNumber(4));
  EXPECT_FALSE(table.Holds("a"));
  EXPECT_TRUE(table.Holds("b"));
  add(5, {"b", 1}, false);
  EXPECT_EQ(table.FindShard(evaluated), nullptr);
}

TEST(LeaseTableTest, OnlyWhatIsBegunCanBeStuck) {
  LeaseTable table =
      TableOf({HeldLeaseOf(1, LeasePhase::kQueued, 0), HeldLeaseOf(2, LeasePhase::kComputing, 0)});
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(9)), ElementsAre(TokenNumber(2)));
  EXPECT_TRUE(table.Update(HeldLeaseOf(1, LeasePhase::kComputing, 0), Second(1)));
  EXPECT_TRUE(table.Update(HeldLeaseOf(2, LeasePhase::kComputing, 1), Second(2)));
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(1)), ElementsAre(TokenNumber(1)));
  EXPECT_TRUE(table.Update(HeldLeaseOf(2, LeasePhase::kPushing, 1), Second(3)));
  EXPECT_EQ(table.Find(TokenNumber(2))->phase, LeasePhase::kPushing);
  EXPECT_EQ(table.Find(TokenNumber(2))->minibatches_started, 1u);
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(2)), ElementsAre(TokenNumber(1)));
  EXPECT_TRUE(table.Update(HeldLeaseOf(1, LeasePhase::kQueued, 0), Second(4)));
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(9)), ElementsAre(TokenNumber(2)))
      << "it waits again";
  table.Remove(TokenNumber(2));
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(9)), IsEmpty());
}

TEST(LeaseTableTest, ForgivenTimeEndsNow) {
  LeaseTable table = TableOf({HeldLeaseOf(1, LeasePhase::kComputing, 1)});
  table.Forgive(seconds(5), Second(20));
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(4)), IsEmpty());
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(5)), ElementsAre(TokenNumber(1)));
  table.Forgive(seconds(50), Second(20));
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(19)), IsEmpty());
  EXPECT_THAT(table.BegunWithoutProgressSince(Second(20)), ElementsAre(TokenNumber(1)));
}

}  // namespace
}  // namespace muster
