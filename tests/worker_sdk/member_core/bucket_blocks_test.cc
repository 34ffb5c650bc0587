#include "worker_sdk/member_core/bucket_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/random.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kFull = 64;  // bytes

GroupTensor Fixed(uint64_t elements, uint32_t fraction_bits = 24) {
  return {"fixed", GroupDtype::kFixedPoint, elements, true, fraction_bits};
}
GroupTensor Float(uint64_t elements) {
  return {"float", GroupDtype::kFloat32, elements, true, 0};
}
GroupTensor Half(uint64_t elements) {
  return {"half", GroupDtype::kBfloat16, elements, true, 0};
}
std::vector<std::vector<uint32_t>> BucketsOf(const BucketBlocks& blocks) {
  std::vector<std::vector<uint32_t>> found;
  for (uint32_t i = 0; i < blocks.size(); ++i) found.push_back(blocks[i].buckets);
  return found;
}
std::vector<std::vector<uint32_t>> BucketsOf(const std::vector<GroupTensor>& tensors,
                                             uint64_t full_bytes = kFull) {
  return BucketsOf(BucketBlocks(tensors, full_bytes));
}

TEST(BucketBlocksTest, SmallBucketsShareABlockUntilItIsFull) {
  // 24 bytes each.
  EXPECT_THAT(BucketsOf({Fixed(3), Fixed(3), Fixed(3), Fixed(3)}),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3)));
  // The bucket that makes it full is the last one, however much it adds.
  EXPECT_THAT(BucketsOf({Fixed(7), Fixed(7), Fixed(1), Fixed(6), Fixed(1)}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4)));
}

TEST(BucketBlocksTest, ALargeBucketIsABlockOfItsOwn) {
  EXPECT_THAT(BucketsOf({Fixed(8)}), ElementsAre(ElementsAre(0)));
  // What is before and after it still shares a block, which comes after it.
  EXPECT_THAT(BucketsOf({Fixed(1), Fixed(8), Fixed(1)}),
              ElementsAre(ElementsAre(1), ElementsAre(0, 2)));
}

TEST(BucketBlocksTest, EachTypeHasBlocksOfItsOwn) {
  EXPECT_THAT(BucketsOf({Fixed(1), Float(1), Half(1), Fixed(1, 20), Half(1), Float(1), Fixed(1)}),
              ElementsAre(ElementsAre(3), ElementsAre(2, 4), ElementsAre(1, 5), ElementsAre(0, 6)));
  // A block is full by its bytes.
  EXPECT_THAT(BucketsOf({Float(8), Float(8), Float(1)}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_THAT(BucketsOf({Half(16), Half(16), Half(1)}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(BucketBlocksTest, WithoutSharingABlockIsABucket) {
  EXPECT_THAT(BucketsOf({Fixed(1), Float(1), Fixed(9), Fixed(1)}, 0),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
}

TEST(BucketBlocksTest, OnlySummedTensorsAreBuckets) {
  const std::vector<GroupTensor> tensors{
      Fixed(1), {"weights", GroupDtype::kFloat32, 9, false, 0}, Fixed(1)};
  const BucketBlocks blocks(tensors);
  EXPECT_EQ(blocks.buckets(), 2u);
  EXPECT_THAT(BucketsOf(blocks), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(BucketsOf(std::vector<GroupTensor>{}), IsEmpty());
}

TEST(BucketBlocksTest, KnowsWhichBucketHasAnElement) {
  const BucketBlocks blocks(std::vector<GroupTensor>{Fixed(2), Float(5), Fixed(1), Fixed(3)},
                            kFull);
  ASSERT_THAT(BucketsOf(blocks), ElementsAre(ElementsAre(1), ElementsAre(0, 2, 3)));
  for (const auto& [element, bucket] :
       std::map<uint64_t, uint32_t>{{0, 0}, {1, 0}, {2, 2}, {3, 3}, {5, 3}}) {
    EXPECT_EQ(blocks.BucketAt(1, element), bucket) << element;
  }
  EXPECT_EQ(blocks.BucketAt(0, 4), 1u);
}

/// Whatever is registered: the places of all buckets fill the blocks, few blocks are not full, and
/// a block that a small bucket makes full is not much larger than that.
TEST(BucketBlocksTest, RandomBuckets) {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<GroupTensor> tensors(rng.Below(40));
    for (GroupTensor& tensor : tensors) {
      const uint64_t elements = 1 + rng.Below(rng.Below(4) == 0 ? 40 : 6);
      const uint64_t type = rng.Below(4);
      tensor = type == 0   ? Float(elements)
               : type == 1 ? Half(elements)
                           : Fixed(elements, type == 2 ? 24 : 20);
    }
    const BucketBlocks blocks(tensors, kFull);
    ASSERT_EQ(blocks.buckets(), tensors.size());
    std::map<std::pair<GroupDtype, uint32_t>, int> not_full;
    size_t placed = 0;
    for (uint32_t i = 0; i < blocks.size(); ++i) {
      const BucketBlock& block = blocks[i];
      uint64_t elements = 0;
      for (const uint32_t bucket : block.buckets) {
        const BucketBlocks::Place& place = blocks.PlaceOf(bucket);
        ASSERT_EQ(place.block, i);
        ASSERT_EQ(place.first, elements);
        ASSERT_EQ(place.elements, tensors[bucket].elements);
        ASSERT_EQ(block.dtype, tensors[bucket].dtype);
        ASSERT_EQ(block.fraction_bits, tensors[bucket].fraction_bits);
        elements += place.elements;
      }
      ASSERT_EQ(block.elements, elements);
      ASSERT_TRUE(std::ranges::is_sorted(block.buckets));
      ASSERT_TRUE(i == 0 || blocks[i - 1].buckets.back() < block.buckets.back());
      if (block.bytes() < kFull) ++not_full[{block.dtype, block.fraction_bits}];
      ASSERT_TRUE(block.buckets.size() == 1 || block.bytes() < 2 * kFull);
      placed += block.buckets.size();
    }
    ASSERT_EQ(placed, tensors.size());
    for (const auto& [type, count] : not_full) ASSERT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace muster::sdk
