#include "worker_sdk/core/row_memory.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "tests/support/status_matchers.h"
#include "worker_sdk/core/small_blocks.h"

namespace muster::sdk {
namespace {

TEST(RowMemoryTest, ABlockThatCameBackServesWhatIsAboutAsLarge) {
  const size_t bytes = 3u << 20;
  void* const first = row_memory::Take(bytes);
  std::memset(first, 1, bytes);
  row_memory::Give(first);
  if (!kKeepsMemory) return;
  void* const second = row_memory::Take(bytes - 1000);
  EXPECT_EQ(second, first);
  void* const third = row_memory::Take(bytes);
  EXPECT_NE(third, second);
  row_memory::Give(second);
  row_memory::Give(third);
}

TEST(RowMemoryTest, AMuchLargerBlockIsLeftForWhoNeedsIt) {
  void* const large = row_memory::Take(16u << 20);
  row_memory::Give(large);
  void* const small = row_memory::Take(row_memory::kPooledBytesMin);
  EXPECT_NE(small, large);
  row_memory::Give(small);
  void* const again = row_memory::Take(16u << 20);
  EXPECT_TRUE(again == large || !kKeepsMemory);
  row_memory::Give(again);
}

TEST(RowMemoryTest, BlocksBeginWithALineAndDoNotOverlap) {
  std::vector<void*> blocks;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{65'535}, size_t{65'536}, size_t{65'537},
                             size_t{2'000'000}, size_t{5'000'000}}) {
    void* const block = row_memory::Take(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    std::memset(block, static_cast<int>(blocks.size()), bytes);
    blocks.push_back(block);
  }
  EXPECT_EQ(static_cast<const char*>(blocks[5])[1'999'999], 5);
  for (void* block : blocks) row_memory::Give(block);
}

TEST(RowMemoryTest, WhatWasInUseOfLateIsKeptAndLaterNoMoreThanTheLimit) {
  constexpr size_t kEach = row_memory::kKeptBytesMax / 8;
  std::vector<void*> blocks;
  for (int i = 0; i < 24; ++i) blocks.push_back(row_memory::Take(kEach));
  for (void* block : blocks) row_memory::Give(block);
  EXPECT_TRUE(row_memory::KeptBytes() >= 24 * kEach || !kKeepsMemory);
  EXPECT_LE(row_memory::KeptBytes(), 24 * kEach / 4 * 5) << "capacities are up to an eighth more";
  for (size_t i = 0; i < 2 * row_memory::kRecentBlocks; ++i) {
    row_memory::Give(row_memory::Take(row_memory::kPooledBytesMin));
  }
  EXPECT_LE(row_memory::KeptBytes(), row_memory::kKeptBytesMax);
  EXPECT_TRUE(row_memory::KeptBytes() > row_memory::kKeptBytesMax / 2 || !kKeepsMemory);
}

TEST(RowMemoryTest, BeyondTheLimitWhatCameBackFirstGoes) {
  constexpr size_t kLarge = row_memory::kKeptBytesMax, kSmall = kLarge / 8;
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(row_memory::Take(kLarge));
  for (void* block : std::exchange(blocks, {})) row_memory::Give(block);
  EXPECT_TRUE(row_memory::KeptBytes() >= 8 * kLarge || !kKeepsMemory);
  for (int i = 0; i < 56; ++i) blocks.push_back(row_memory::Take(kSmall));
  for (void* block : std::exchange(blocks, {})) row_memory::Give(block);
  EXPECT_LE(row_memory::KeptBytes(), 8 * kLarge / 8 * 9) << "capacities are up to an eighth more";
  const size_t kept = row_memory::KeptBytes();
  for (int i = 0; i < 56; ++i) blocks.push_back(row_memory::Take(kSmall));
  EXPECT_TRUE(row_memory::KeptBytes() + 56 * kSmall <= kept || !kKeepsMemory)
      << "the small ones went";
  for (void* block : blocks) row_memory::Give(block);
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
  rows[0] = 7;
  const void* const at = rows.get();
  rows.reset();
  EXPECT_EQ(other[0], 7);
  EXPECT_NE(static_cast<const void*>(MakeRowBlock(1u << 20).get()), at);
}

}  // namespace
}  // namespace muster::sdk
