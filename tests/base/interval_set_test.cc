#include "base/interval_set.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace muster {
namespace {

TEST(IntervalSetTest, NeighboursMergeAndHolesSplit) {
  IntervalSet set;
  set.Add(10, 20);
  set.Add(30, 40);
  set.Add(20, 30);
  EXPECT_EQ(set.intervals(), (std::map<uint64_t, uint64_t>{{10, 40}}));
  set.Remove(15, 16);
  EXPECT_EQ(set.intervals(), (std::map<uint64_t, uint64_t>{{10, 15}, {16, 40}}));
  set.Remove(0, 12);
  set.Remove(39, 100);
  EXPECT_EQ(set.intervals(), (std::map<uint64_t, uint64_t>{{12, 15}, {16, 39}}));
  EXPECT_EQ(set.count(), 26u);
  set.Remove(14, 20);
  EXPECT_EQ(set.intervals(), (std::map<uint64_t, uint64_t>{{12, 14}, {20, 39}}));
  set.Remove(7, 7);
  set.Remove(13, 13);
  EXPECT_EQ(set.intervals(), (std::map<uint64_t, uint64_t>{{12, 14}, {20, 39}}));
  EXPECT_EQ(set.count(), 21u);
}

TEST(IntervalSetTest, EqualsAPlainSetOverRandomOperations) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    IntervalSet set;
    std::set<uint64_t> expected;
    for (int step = 0; step < 60; ++step) {
      const uint64_t begin = rng.Below(50);
      const uint64_t end = begin + 1 + rng.Below(12);
      const bool add = rng.Below(2) == 0;
      add ? set.Add(begin, end) : set.Remove(begin, end);
      for (uint64_t value = begin; value < end; ++value) {
        add ? (void)expected.insert(value) : (void)expected.erase(value);
      }
      ASSERT_EQ(set.count(), expected.size()) << "seed " << seed << " step " << step;
      for (uint64_t value = 0; value < 64; ++value) {
        ASSERT_EQ(set.Contains(value), expected.contains(value)) << "seed " << seed;
      }
      uint64_t before = 0;
      for (const auto& [first, last] : set.intervals()) {
        ASSERT_LT(first, last);
        ASSERT_TRUE(before == 0 || first > before) << "adjacent intervals, seed " << seed;
        before = last;
      }
    }
  }
}

}  // namespace
}  // namespace muster
