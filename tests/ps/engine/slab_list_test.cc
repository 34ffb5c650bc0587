#include "ps/engine/slab_list.h"

#include <gtest/gtest.h>

namespace muster::ps {
namespace {

TEST(SlabListTest, HoldsWhatWasPushedAtItsPlace) {
  SlabList<uint64_t> list;
  EXPECT_TRUE(list.empty());
  for (uint64_t i = 0; i < 100'000; ++i) {
    list.push_back(i * 3);
    ASSERT_EQ(list[i], i * 3);
  }
  EXPECT_EQ(list.size(), 100'000u);
  for (uint64_t i = 0; i < 100'000; ++i) ASSERT_EQ(list[i], i * 3);
  EXPECT_GE(list.bytes(), list.size() * sizeof(uint64_t));
  EXPECT_LE(list.bytes(), 2 * list.size() * sizeof(uint64_t) + 1000);
}

TEST(SlabListTest, AListThatWasMovedFromIsEmptyAndGoesOn) {
  SlabList<uint32_t> list;
  for (uint32_t i = 0; i < 100; ++i) list.push_back(i);
  SlabList<uint32_t> other = std::exchange(list, {});
  EXPECT_EQ(other.size(), 100u);
  EXPECT_EQ(other[99], 99u);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.bytes(), 0u);
  list.push_back(7);
  EXPECT_EQ(list[0], 7u);
  other = std::move(list);
  EXPECT_EQ(other.size(), 1u);
}

}  // namespace
}  // namespace muster::ps
