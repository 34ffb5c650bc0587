#include "master/sources/lines/parallel.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ForEachInParallelTest, EveryNumberIsDoneOnce) {
  for (const uint32_t threads : {0u, 1u, 3u, 100u}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{50}}) {
      std::vector<std::atomic<int>> times(count);
      ForEachInParallel(count, threads, [&](size_t i) { ++times[i]; });
      for (const std::atomic<int>& one : times) EXPECT_EQ(one, 1);
    }
  }
  EXPECT_EQ(ThreadCount(8, 3), 3u);
  EXPECT_EQ(ThreadCount(8, 0), 1u);
  EXPECT_GE(ThreadCount(0, 100), 1u);
}

}  // namespace
}  // namespace muster
