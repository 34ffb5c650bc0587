#include "net/ring_budget.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::net {
namespace {

TEST(RingBudgetTest, TheFirstPeersGetMostAndAllTogetherNoMoreThanTheLimit) {
  RingBudget budget(64u << 20);
  std::vector<size_t> given;
  while (const size_t ring = budget.Take(RingBudget::kRingBytesMax)) {
    EXPECT_LE(ring, given.empty() ? ring : given.back());
    given.push_back(ring);
    ASSERT_LE(budget.bytes(), 64u << 20);
  }
  EXPECT_EQ(given.front(), RingBudget::kRingBytesMax);
  EXPECT_EQ(given.back(), RingBudget::kRingBytesMin);
  EXPECT_GT(given.size(), 16u);
  for (const size_t ring : given) budget.Give(ring);
  EXPECT_EQ(budget.bytes(), 0u);
  EXPECT_EQ(budget.Take(300'000), RingBudget::kRingBytesMin);
  EXPECT_EQ(budget.Take(RingBudget::kRingBytesMin - 1), 0u);
}

}  // namespace
}  // namespace muster::net
