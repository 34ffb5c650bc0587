#include "worker_sdk/core/kept_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace muster::sdk {
namespace {

using ::testing::Each;

TEST(SmallBlocksTest, ABlockThatCameBackServesWhatIsAboutAsLarge) {
  void* const first = kept_memory::Take(1000);
  kept_memory::Give(first, 1000);
  if (!kKeepsMemory) return;
  void *const larger = kept_memory::Take(1025), *const second = kept_memory::Take(513);
  EXPECT_EQ(second, first);
  EXPECT_NE(larger, first);
  kept_memory::Give(second, 513);
  kept_memory::Give(larger, 1025);
}

TEST(KeptMemoryTest, BlocksBeginWithALineAndDoNotOverlap) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (const size_t bytes : {0, 1, 63, 64, 65, 127, 128, 129, 4'096, 4'097, 65'535, 65'536, 65'537,
                             2'000'000, 5'000'000}) {
    for (int i = 0; i < 3; ++i) {
      auto* const block = static_cast<unsigned char*>(kept_memory::Take(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.emplace_back(block, bytes);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::span<unsigned char> block(blocks[i].first, blocks[i].second);
    EXPECT_EQ(static_cast<size_t>(std::ranges::count(block, i)), block.size());
  }
  for (const auto& [block, bytes] : blocks) kept_memory::Give(block, bytes);
}

TEST(SmallBlocksTest, WhatIsMoreThanEnoughIsNotKept) {
  if (!kKeepsMemory) return;
  constexpr size_t kMost = kept_memory::kSmallKeptBytesMax / kept_memory::kSmallBytesMax;
  std::vector<void*> blocks;
  for (size_t i = 0; i < 2 * kMost; ++i) blocks.push_back(kept_memory::Take(60'000));
  for (void* const block : blocks) kept_memory::Give(block, 60'000);
  // Those that came back first are the ones that are kept.
  const std::set<void*> kept(blocks.begin(), blocks.begin() + kMost);
  std::vector<void*> again;
  for (size_t i = 0; i < kMost; ++i) again.push_back(kept_memory::Take(60'000));
  EXPECT_EQ(std::set<void*>(again.begin(), again.end()), kept);
  for (void* const block : again) kept_memory::Give(block, 60'000);
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

TEST(PooledTest, WhatIsLargerIsALargeBlock) {
  PooledVector<uint64_t> numbers(100'000, 7);
  EXPECT_THAT(numbers, Each(7u));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.data()) % 64, 0u);
  numbers = {};
  EXPECT_TRUE(kept_memory::LargeKeptBytes() >= 800'000 || !kKeepsMemory);
}

TEST(LargeBlocksTest, ABlockThatCameBackServesWhatIsAboutAsLarge) {
  const size_t bytes = 3u << 20;
  void* const first = kept_memory::Take(bytes);
  std::memset(first, 1, bytes);
  kept_memory::Give(first, bytes);
  if (!kKeepsMemory) return;
  void* const second = kept_memory::Take(bytes - 1000);
  EXPECT_EQ(second, first);
  void* const third = kept_memory::Take(bytes);
  EXPECT_NE(third, second);
  kept_memory::Give(second, bytes - 1000);
  kept_memory::Give(third, bytes);
}

TEST(LargeBlocksTest, AMuchLargerBlockIsLeftForWhoNeedsIt) {
  void* const large = kept_memory::Take(16u << 20);
  kept_memory::Give(large, 16u << 20);
  void* const small = kept_memory::Take(kept_memory::kSmallBytesMax + 1);
  EXPECT_NE(small, large);
  kept_memory::Give(small, kept_memory::kSmallBytesMax + 1);
  void* const again = kept_memory::Take(16u << 20);
  EXPECT_TRUE(again == large || !kKeepsMemory);
  kept_memory::Give(again, 16u << 20);
}

TEST(LargeBlocksTest, WhatWasInUseOfLateIsKeptAndLaterNoMoreThanTheLimit) {
  constexpr size_t kEach = kept_memory::kLargeKeptBytesMax / 8;
  constexpr size_t kSmallest = kept_memory::kSmallBytesMax + 1;
  std::vector<void*> blocks;
  for (int i = 0; i < 24; ++i) blocks.push_back(kept_memory::Take(kEach));
  for (void* block : blocks) kept_memory::Give(block, kEach);
  EXPECT_TRUE(kept_memory::LargeKeptBytes() >= 24 * kEach || !kKeepsMemory);
  EXPECT_LE(kept_memory::LargeKeptBytes(), 24 * kEach / 4 * 5)
      << "capacities are up to an eighth more";
  for (size_t i = 0; i < 2 * kept_memory::kRecentBlocks; ++i) {
    kept_memory::Give(kept_memory::Take(kSmallest), kSmallest);
  }
  EXPECT_LE(kept_memory::LargeKeptBytes(), kept_memory::kLargeKeptBytesMax);
  EXPECT_TRUE(kept_memory::LargeKeptBytes() > kept_memory::kLargeKeptBytesMax / 2 || !kKeepsMemory);
}

TEST(LargeBlocksTest, BeyondTheLimitWhatCameBackFirstGoes) {
  constexpr size_t kLarge = kept_memory::kLargeKeptBytesMax, kSmall = kLarge / 8;
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(kept_memory::Take(kLarge));
  for (void* block : std::exchange(blocks, {})) kept_memory::Give(block, kLarge);
  EXPECT_TRUE(kept_memory::LargeKeptBytes() >= 8 * kLarge || !kKeepsMemory);
  for (int i = 0; i < 56; ++i) blocks.push_back(kept_memory::Take(kSmall));
  for (void* block : std::exchange(blocks, {})) kept_memory::Give(block, kSmall);
  EXPECT_LE(kept_memory::LargeKeptBytes(), 8 * kLarge / 8 * 9)
      << "capacities are up to an eighth more";
  const size_t kept = kept_memory::LargeKeptBytes();
  for (int i = 0; i < 56; ++i) blocks.push_back(kept_memory::Take(kSmall));
  EXPECT_TRUE(kept_memory::LargeKeptBytes() + 56 * kSmall <= kept || !kKeepsMemory)
      << "the small ones went";
  for (void* block : blocks) kept_memory::Give(block, kSmall);
}

TEST(RowVectorTest, KeepsItsElementsAndSetsThoseThatAValueIsGivenFor) {
  RowVector<float> values(40'000, 2.0f);
  values.resize(100'000);
  values.resize(100'001, 3.0f);
  EXPECT_EQ(values[0], 2.0f);
  EXPECT_EQ(values[39'999], 2.0f);
  EXPECT_EQ(values[100'000], 3.0f);
  const RowVector<float> copy = values;
  EXPECT_EQ(copy[39'999], 2.0f);
}

TEST(RowVectorTest, RowsThatSeveralHoldComeBackWithTheLast) {
  std::shared_ptr<float[]> rows = MakeRowBlock(1u << 20);
  const std::shared_ptr<const float[]> other = rows;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(rows.get()) % 64, 0u);
  rows[0] = 7;
  const void* const at = rows.get();
  rows.reset();
  EXPECT_EQ(other[0], 7);
  EXPECT_NE(static_cast<const void*>(MakeRowBlock(1u << 20).get()), at);
}

}  // namespace
}  // namespace muster::sdk
