#include "worker_sdk/core/small_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "worker_sdk/core/pooled.h"

namespace muster::sdk {
namespace {

using ::testing::Each;

TEST(SmallBlocksTest, ABlockThatCameBackServesWhatIsAboutAsLarge) {
  void* const first = small_blocks::Take(1000);
  small_blocks::Give(first, 1000);
  if (!kKeepsMemory) return;
  void *const larger = small_blocks::Take(1025), *const second = small_blocks::Take(513);
  EXPECT_EQ(second, first);
  EXPECT_NE(larger, first);
  small_blocks::Give(second, 513);
  small_blocks::Give(larger, 1025);
}

TEST(SmallBlocksTest, BlocksBeginWithALineAndDoNotOverlap) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (const size_t bytes : {0, 1, 63, 64, 65, 127, 128, 129, 4'096, 4'097, 65'535, 65'536}) {
    for (int i = 0; i < 3; ++i) {
      auto* const block = static_cast<unsigned char*>(small_blocks::Take(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.emplace_back(block, bytes);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_THAT(std::span(blocks[i].first, blocks[i].second), Each(i)) << blocks[i].second;
  }
  for (const auto& [block, bytes] : blocks) small_blocks::Give(block, bytes);
}

TEST(SmallBlocksTest, WhatIsMoreThanEnoughIsNotKept) {
  if (!kKeepsMemory) return;
  constexpr size_t kMost = small_blocks::kKeptBytesMax / small_blocks::kBytesMax;
  std::vector<void*> blocks;
  for (size_t i = 0; i < 2 * kMost; ++i) blocks.push_back(small_blocks::Take(60'000));
  for (void* const block : blocks) small_blocks::Give(block, 60'000);
  // Those that came back first are the ones that are kept.
  const std::set<void*> kept(blocks.begin(), blocks.begin() + kMost);
  std::vector<void*> again;
  for (size_t i = 0; i < kMost; ++i) again.push_back(small_blocks::Take(60'000));
  EXPECT_EQ(std::set<void*>(again.begin(), again.end()), kept);
  for (void* const block : again) small_blocks::Give(block, 60'000);
}

TEST(SmallBlocksTest, ThreadsShareThem) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 5'000; ++i) {
        PooledVector<int> numbers(static_cast<size_t>(i % 300), t);
        const auto shared = MakePooled<PooledVector<int>>(numbers);
        ASSERT_THAT(*shared, Each(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PooledTest, WhatIsLargerIsRowMemory) {
  PooledVector<uint64_t> numbers(100'000, 7);
  EXPECT_THAT(numbers, Each(7u));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.data()) % 64, 0u);
  numbers = {};
  EXPECT_TRUE(row_memory::KeptBytes() >= 800'000 || !kKeepsMemory);
}

}  // namespace
}  // namespace muster::sdk
