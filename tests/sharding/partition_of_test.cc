#include "sharding/partition_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster {
namespace {

TEST(PartitionOfTest, PartitionsOfRowsNeverChange) {
  // Golden: journals, snapshots and running workers depend on these.
  EXPECT_EQ(PartitionOf(TableId(1), 0, 256).value(), 110u);
  EXPECT_EQ(PartitionOf(TableId(1), 1, 256).value(), 121u);
  EXPECT_EQ(PartitionOf(TableId(2), 1, 256).value(), 246u);
  EXPECT_EQ(PartitionOf(TableId(7), 0xffffffffffffffffULL, 100).value(), 47u);
}

TEST(PartitionOfTest, NeighbouringKeysSpreadEvenly) {
  std::vector<int> rows(64);
  for (uint64_t key = 0; key < 64'000; ++key) ++rows[PartitionOf(TableId(1), key, 64).value()];
  EXPECT_GT(*std::min_element(rows.begin(), rows.end()), 800);
  EXPECT_LT(*std::max_element(rows.begin(), rows.end()), 1200);
}

}  // namespace
}  // namespace muster
