#include "ps/engine/push_ahead.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "ps/engine/partition.h"

namespace muster::ps {
namespace {

std::vector<uint64_t> Keys(size_t count, uint64_t first = 0) {
  std::vector<uint64_t> keys(count);
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

TEST(PushAheadTest, IsToldOfGroupsUntilEnoughKeysAreAhead) {
  PushAhead ahead;
  const std::vector<uint64_t> keys = Keys(10);
  size_t groups = 0;
  for (; ahead.wants_more(); ++groups) ahead.Expect(nullptr, keys);
  EXPECT_EQ(groups, 13u) << "128 keys";
  ahead.Pass(10);
  EXPECT_TRUE(ahead.wants_more());
  ahead.Expect(nullptr, keys);
  EXPECT_FALSE(ahead.wants_more());
  ahead.Clear();
  EXPECT_TRUE(ahead.wants_more());
}

TEST(PushAheadTest, ALargeGroupCountsAsAFewKeysBothTimes) {
  PushAhead ahead;
  const std::vector<uint64_t> keys = Keys(10'000);
  for (int round = 0; round < 100; ++round) {
    ahead.Expect(nullptr, keys);
    ASSERT_TRUE(ahead.wants_more()) << round;
    ahead.Expect(nullptr, keys);
    ASSERT_FALSE(ahead.wants_more()) << round;
    ahead.FindRows();
    ahead.Pass(keys.size());
    ASSERT_TRUE(ahead.wants_more()) << round;
    ahead.Pass(keys.size());
  }
}

TEST(PushAheadTest, GroupsWithoutKeysAreNotAnnouncedWithoutEnd) {
  PushAhead ahead;
  size_t groups = 0;
  for (; ahead.wants_more(); ++groups) ahead.Expect(nullptr, {});
  EXPECT_EQ(groups, 256u);
  ahead.FindRows();
  for (size_t group = 0; group < groups; ++group) ahead.Pass(0);
  EXPECT_EQ(ahead.passed_groups(), groups);
  EXPECT_TRUE(ahead.wants_more());
}

TEST(PushAheadTest, APartitionTellsOfEveryGroupThatItApplies) {
  class Counting final : public PushAhead {
   public:
    void Refill() override { passed.push_back(passed_groups()); }
    std::vector<size_t> passed;
  };
  Counting ahead;
  Partition partition(PartitionId(0), 1);
  const std::vector<uint64_t> keys = Keys(3);
  const std::vector<float> gradients(6, 1);
  Part part{.minibatch = MinibatchIndex(1), .token = LeaseToken(MasterIncarnation(1), 1)};
  for (const uint32_t id : {1, 2}) {
    TableSpec spec;
    spec.id = TableId(id);
    spec.dim = 2;
    partition.AddTable(spec);
    part.groups.push_back({spec.id, keys, gradients});
  }
  EXPECT_EQ(partition.Apply(part, &ahead).code, ApplyCode::kApplied);
  EXPECT_EQ(ahead.passed, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(partition.Apply(part, &ahead).code, ApplyCode::kSkipped);
  EXPECT_EQ(ahead.passed_groups(), 2u);
}

/// Whatever it is told, rows and index stay as they are.
TEST(PushAheadTest, ChangesNothing) {
  TableSpec spec;
  spec.id = TableId(1);
  spec.name = "t";
  spec.dim = 2;
  spec.optimizer = SumSpec{};
  Table table(spec, 7);
  const std::vector<uint64_t> there = Keys(50), absent = Keys(50, 1'000);
  const std::vector<float> gradients(100, 1);
  WorkLimit work = WorkLimit::None();
  ASSERT_EQ(table.Apply(there, gradients, 0, &work), there.size());
  PushAhead ahead;
  ahead.Expect(&table, there);
  ahead.Expect(nullptr, there);
  ahead.Expect(&table, absent);
  ahead.FindRows();
  ahead.Pass(there.size());
  ahead.FindRows();
  EXPECT_EQ(table.rows(), there.size());
  std::vector<float> values(100);
  ASSERT_EQ(table.Pull(there, values, &work), there.size());
  EXPECT_EQ(values, gradients);
}

}  // namespace
}  // namespace muster::ps
