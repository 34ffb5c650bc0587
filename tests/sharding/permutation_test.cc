#include "sharding/permutation.h"

#include <gmock/gmock.h>

#include <vector>

#include "sharding/block_order.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(PermutationTest, EachNumberHasOnePlace) {
  for (const uint64_t size : {1, 2, 3, 4, 5, 16, 17, 255, 256, 257, 4097}) {
    const Permutation permutation(7, size);
    std::vector<int> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t value = permutation.At(i);
      ASSERT_LT(value, size);
      ++seen[value];
      ASSERT_EQ(permutation.IndexOf(value), i) << "size " << size;
    }
    ASSERT_THAT(seen, Each(1)) << "size " << size;
  }
  const Permutation huge(7, (uint64_t{1} << 52) + 12'345);
  EXPECT_EQ(huge.IndexOf(huge.At(77)), 77u);
}

TEST(BlockOrderTest, EachBlockHasOnePosition) {
  for (const uint64_t blocks : {1, 2, 5, 63, 64, 65, 127, 128, 1000, 1001}) {
    for (const uint32_t strata : {1, 2, 7, 64}) {
      const BlockOrder order(9, blocks, strata);
      std::vector<int> seen(blocks);
      for (uint64_t position = 0; position < blocks; ++position) {
        const uint64_t block = order.BlockAt(position);
        ASSERT_LT(block, blocks);
        ++seen[block];
        ASSERT_EQ(order.PositionOf(block), position) << blocks << " blocks, " << strata;
      }
      ASSERT_THAT(seen, Each(1)) << blocks << " blocks, " << strata << " strata";
    }
  }
}

// Whatever the blocks are sorted by, any run of positions has its share of each part.
TEST(BlockOrderTest, EachRunIsAStratifiedSample) {
  constexpr uint64_t kBlocks = 4'714;
  constexpr uint32_t kStrata = 64;
  const BlockOrder order(9, kBlocks, kStrata);
  for (uint64_t begin = 0; begin + kStrata <= kBlocks; begin += 37) {
    int first_tenth = 0;
    int second_half = 0;
    for (uint64_t position = begin; position < begin + kStrata; ++position) {
      const uint64_t block = order.BlockAt(position);
      if (block < kBlocks / 10) ++first_tenth;
      if (block >= kBlocks / 2) ++second_half;
    }
    EXPECT_NEAR(first_tenth, 6.4, 2) << begin;
    EXPECT_NEAR(second_half, 32, 2) << begin;
  }
}

TEST(BlockOrderTest, NeverChanges) {
  // Golden: journals and running workers depend on these.
  const BlockOrder order(11, 10, 4);
  std::vector<uint64_t> blocks;
  for (uint64_t position = 0; position < 10; ++position) blocks.push_back(order.BlockAt(position));
  EXPECT_THAT(blocks, ElementsAre(1, 9, 5, 3, 0, 8, 6, 2, 4, 7));
}

}  // namespace
}  // namespace muster
