#include "base/work_limit.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(WorkLimitTest, IsSpentWhenAsMuchOrMoreWasDone) {
  WorkLimit work(100);
  EXPECT_FALSE(work.spent());
  work.Spend(99);
  EXPECT_FALSE(work.spent());
  work.Spend(50);
  EXPECT_TRUE(work.spent());
}

TEST(WorkLimitTest, SomethingAlwaysFits) {
  WorkLimit work(100);
  EXPECT_EQ(work.Fits(10, 30), 3u);
  EXPECT_EQ(work.Fits(2, 30), 2u);
  EXPECT_EQ(work.Fits(5, 1000), 1u);
  EXPECT_EQ(work.Fits(0, 1000), 0u);
  EXPECT_EQ(work.Fits(7, 0), 7u);
}

TEST(WorkLimitTest, WithoutALimitNothingIsEverSpent) {
  WorkLimit work = WorkLimit::None();
  work.Spend(uint64_t{1} << 60);
  EXPECT_FALSE(work.spent());
  EXPECT_EQ(work.Fits(size_t{1} << 40, 1 << 20), size_t{1} << 40);
}

}  // namespace
}  // namespace muster
