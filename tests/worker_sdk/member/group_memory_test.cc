#include "worker_sdk/member/group_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>
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

StripeCopy CopyOf(const GroupMemory& memory, uint32_t stripe, uint32_t stripes) {
  StripeCopy copy;
  std::atomic<uint64_t> copied = 0;
  memory.Copy(stripe, stripes, &copy, &copied);
  EXPECT_EQ(copied.load(), copy.bytes().size());
  return copy;
}

std::vector<int> Numbers(std::span<const std::byte> bytes) {
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
    const std::vector<int> numbers = Numbers(CopyOf(memory, stripe, 4).bytes());
    EXPECT_EQ(numbers.size(), stripe < 3 ? 3u : 2u);
    EXPECT_EQ(memory.StripeAt(stripe, 4).first, all.size());
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  EXPECT_EQ(all, Numbers(CopyOf(memory, 0, 1).bytes()));
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
    to.memory().Fill(stripe, 3, CopyOf(from.memory(), stripe, 3).bytes());
    EXPECT_EQ(to.memory().StripeDigest(stripe, 3), from.memory().StripeDigest(stripe, 3));
  }
  EXPECT_EQ(to.second, from.second);
  EXPECT_EQ(to.memory().Digest(), from.memory().Digest());
  EXPECT_EQ(to.memory().Digest(), CopyOf(to.memory(), 0, 1).crc());
}

TEST(GroupMemoryTest, LargePiecesAreCopiedWhereverTheyBegin) {
  std::vector<std::byte> first(1'000'003), second(500'009);
  for (size_t i = 0; i < first.size(); ++i) first[i] = std::byte(i % 251);
  for (size_t i = 0; i < second.size(); ++i) second[i] = std::byte(i % 241);
  const GroupMemory memory(
      {std::span(first).subspan(1), std::span(second).first(7), std::span(second).subspan(7)});
  for (uint32_t stripe = 0; stripe < 3; ++stripe) {
    const StripeCopy copy = CopyOf(memory, stripe, 3);
    std::vector<std::byte> expected;
    for (const auto piece : memory.Pieces(stripe, 3, first.size())) {
      expected.insert(expected.end(), piece.begin(), piece.end());
    }
    EXPECT_TRUE(std::ranges::equal(copy.bytes(), expected));
    EXPECT_EQ(copy.crc(), Crc32c(expected));
  }
}

TEST(GroupMemoryTest, ACopyUsesTheMemoryOfAFormerOne) {
  State state;
  SpareCopy spare;
  EXPECT_TRUE(spare.Take().bytes().empty());
  StripeCopy copy = CopyOf(state.memory(), 0, 1);
  const std::byte* const memory = copy.bytes().data();
  spare.Put(std::move(copy));
  StripeCopy next = spare.Take();
  std::atomic<uint64_t> copied = 0;
  state.memory().Copy(0, 2, &next, &copied);
  EXPECT_EQ(next.bytes().data(), memory);
  EXPECT_EQ(Numbers(next.bytes()), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(next.crc(), Crc32c(next.bytes()));
  EXPECT_TRUE(spare.Take().bytes().empty());
}

TEST(GroupMemoryTest, TheLargerMemoryStaysForTheNextCopy) {
  State state;
  SpareCopy spare;
  StripeCopy large;
  EXPECT_FALSE(large.Prepare(1'000'000, 400'000));
  EXPECT_FALSE(large.Prepare(1'000'000, 400'000));
  EXPECT_TRUE(large.Prepare(1'000'000, 400'000));
  const std::byte* const memory = large.bytes().data();
  spare.Put(std::move(large));
  spare.Put(CopyOf(state.memory(), 0, 1));
  EXPECT_EQ(spare.Take().bytes().data(), memory);
}

TEST(GroupMemoryTest, ACopyGrowsOverManyBlocks) {
  std::vector<std::byte> large(700'001, std::byte(3));
  large.back() = std::byte(4);
  StripeCopy copy = CopyOf(GroupMemory({std::span(large).first(10)}), 0, 1);
  std::atomic<uint64_t> copied = 0;
  GroupMemory({large}).Copy(0, 1, &copy, &copied);
  EXPECT_TRUE(std::ranges::equal(copy.bytes(), large));
  EXPECT_EQ(copy.crc(), Crc32c(copy.bytes()));
}

TEST(GroupMemoryTest, TheHashIsOfTheBytesInTheirOrder) {
  State state;
  const uint64_t hash = state.memory().Hash();
  EXPECT_EQ(GroupMemory({state.first, state.second}).Hash(), hash) << "wherever they are";
  EXPECT_NE(GroupMemory({state.second, state.first}).Hash(), hash);
  state.second.back() = std::byte(99);
  EXPECT_NE(state.memory().Hash(), hash);
}

TEST(GroupMemoryTest, MoreStripesThanBytes) {
  State state;
  EXPECT_EQ(CopyOf(state.memory(), 20, 40).bytes().size(), 0u);
  EXPECT_EQ(state.memory().StripeDigest(20, 40), Crc32c(std::span<const std::byte>()));
}

}  // namespace
}  // namespace muster::internal
