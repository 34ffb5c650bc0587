#include "master/core/lease_table.h"

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

}  // namespace
}  // namespace muster
