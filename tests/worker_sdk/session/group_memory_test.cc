#include "worker_sdk/session/group_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/checksum/crc32c.h"

namespace muster::internal {
namespace {

/// Three pieces of memory with the bytes 0, 1, 2, ..., one of them empty.
struct State {
  std::vector<std::byte> first = std::vector<std::byte>(5), none,
                         second = std::vector<std::byte>(6);
  State() {
    int next = 0;
    for (std::byte& byte : first) byte = std::byte(next++);
    for (std::byte& byte : second) byte = std::byte(next++);
  }
  GroupMemory memory() { return GroupMemory({first, none, second}); }
};

std::vector<int> Numbers(const std::vector<std::byte>& bytes) {
  std::vector<int> numbers;
  for (const std::byte byte : bytes) numbers.push_back(std::to_integer<int>(byte));
  return numbers;
}

TEST(GroupMemoryTest, StripesHaveEveryByteOnceAndDifferByOneAtMost) {
  State state;
  const GroupMemory memory = state.memory();
  ASSERT_EQ(memory.bytes(), 11u);
  std::vector<int> all;
  for (uint32_t stripe = 0; stripe < 4; ++stripe) {
    const std::vector<int> numbers = Numbers(memory.Copy(stripe, 4));
    EXPECT_EQ(numbers.size(), stripe < 3 ? 3u : 2u);
    EXPECT_EQ(memory.StripeAt(stripe, 4).first, all.size());
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  EXPECT_EQ(all, Numbers(memory.Copy(0, 1)));
}

TEST(GroupMemoryTest, PiecesAreCutWhereMemoryEndsAndAtTheLimit) {
  State state;
  std::vector<size_t> sizes;
  for (const auto piece : state.memory().Pieces(0, 1, 4)) sizes.push_back(piece.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{4, 1, 4, 2}));
}

TEST(GroupMemoryTest, WhatIsCopiedFillsAnother) {
  State from, to;
  for (std::byte& byte : from.second) byte = std::byte(77);
  for (uint32_t stripe = 0; stripe < 3; ++stripe) {
    to.memory().Fill(stripe, 3, from.memory().Copy(stripe, 3));
    EXPECT_EQ(to.memory().StripeDigest(stripe, 3), from.memory().StripeDigest(stripe, 3));
  }
  EXPECT_EQ(to.second, from.second);
  EXPECT_EQ(to.memory().Digest(), from.memory().Digest());
  EXPECT_EQ(to.memory().Digest(), Crc32c(to.memory().Copy(0, 1)));
}

TEST(GroupMemoryTest, MoreStripesThanBytes) {
  State state;
  EXPECT_EQ(state.memory().Copy(20, 40).size(), 0u);
  EXPECT_EQ(state.memory().StripeDigest(20, 40), Crc32c(std::span<const std::byte>()));
}

}  // namespace
}  // namespace muster::internal
