#include "ps/engine/slab_memory.h"

#include "base/mapped_memory.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster::ps::slab_memory {
namespace {

/// The address sanitizer's allocator is used instead of ours.
bool Ours() {
  const std::unique_ptr<void, GiveSlab> block(Take(100), GiveSlab{100});
  return MappedBytes() > 0;
}

TEST(SlabMemoryTest, BlocksNeverOverlapAndAllMemoryGoesBack) {
  struct Block {
    unsigned char* bytes;
    size_t size;
    unsigned char mark;
  };
  const size_t before = MappedBytes();
  Rng rng(5);
  std::vector<Block> blocks;
  size_t used = 0, most = 0;
  const auto give = [&](size_t i) {
    const Block block = blocks[i];
    EXPECT_TRUE(std::all_of(block.bytes, block.bytes + block.size,
                            [&](unsigned char byte) { return byte == block.mark; }));
    Give(block.bytes, block.size);
    used -= block.size;
    blocks[i] = blocks.back();
    blocks.pop_back();
  };
  for (int step = 0; step < 3000; ++step) {
    if (blocks.size() > 150 || (!blocks.empty() && rng.Below(2) == 0)) {
      give(rng.Below(blocks.size()));
      continue;
    }
    const size_t size = 1 + rng.Below(rng.Below(20) == 0 ? 3u << 20 : 100'000);
    const bool zeroed = rng.Below(2) == 0;
    auto* const bytes = static_cast<unsigned char*>(zeroed ? TakeZeroed(size) : Take(size));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
    ASSERT_TRUE(!zeroed ||
                std::all_of(bytes, bytes + size, [](unsigned char byte) { return byte == 0; }));
    const auto mark = static_cast<unsigned char>(1 + rng.Below(255));
    std::fill_n(bytes, size, mark);
    blocks.push_back({bytes, size, mark});
    used += size;
    most = std::max(most, used);
  }
  if (Ours()) {
    EXPECT_GE(MappedBytes(), used);
    EXPECT_LE(MappedBytes(), before + 2 * most + kChunkBytes) << "gaps are used again";
  }
  while (!blocks.empty()) give(0);
  EXPECT_EQ(MappedBytes(), before);
}

TEST(SlabMemoryTest, SmallBlocksShareAChunk) {
  if (!Ours()) GTEST_SKIP();
  const size_t before = MappedBytes();
  std::vector<std::unique_ptr<void, GiveSlab>> blocks;
  for (int i = 0; i < 100; ++i) blocks.emplace_back(Take(50'000), GiveSlab{50'000});
  EXPECT_LE(MappedBytes(), before + kChunkBytes);
  const size_t large = kSharedBytesMax + 1;
  blocks.emplace_back(Take(large), GiveSlab{large});
  EXPECT_LE(MappedBytes(), before + kChunkBytes + 2 * kHugePageBytes);
}

}  // namespace
}  // namespace muster::ps::slab_memory
