#include "benchmarks/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;

std::map<uint64_t, int> CountsOf(const KeySequence& sequence) {
  std::map<uint64_t, int> counts;
  for (const uint64_t key : sequence.keys) ++counts[key];
  return counts;
}

TEST(DrawKeys, EveryKeyIsARowAndTheSameDrawGivesTheSameKeys) {
  const KeyDraw draw{.rows = 1000, .keys_a_call = 300, .calls = 7};
  const KeySequence sequence = DrawKeys(draw);
  EXPECT_EQ(sequence.calls(), 7u);
  EXPECT_EQ(sequence.keys.size(), 2100u);
  EXPECT_THAT(sequence.keys, Each(Lt(1000u)));
  EXPECT_EQ(DrawKeys(draw).keys, sequence.keys);
  EXPECT_NE(DrawKeys({.rows = 1000, .keys_a_call = 300, .calls = 7, .seed = 2}).keys,
            sequence.keys);
}

TEST(DrawKeys, RanksFollowZipfsLaw) {
  const auto counts = CountsOf(DrawKeys({.rows = 1000, .keys_a_call = 100'000, .calls = 1}));
  std::vector<int> by_rank;
  for (const auto& [key, count] : counts) by_rank.push_back(count);
  std::ranges::sort(by_rank, std::greater());
  // The weights of 1,000 ranks add up to 7.73: the first rank has 12.9 % of all keys, the second
  // half as many, the tenth a tenth.
  EXPECT_NEAR(by_rank[0], 12'940, 500);
  EXPECT_NEAR(by_rank[1], 6515, 400);
  EXPECT_NEAR(by_rank[9], 1324, 200);
}

TEST(DrawKeys, NeighboursInRankAreNoneInMemory) {
  const auto counts = CountsOf(DrawKeys({.rows = 1000, .keys_a_call = 100'000, .calls = 1}));
  const auto most = std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; });
  EXPECT_NE(most->first, 0u);
}

TEST(DrawKeys, ExponentZeroIsUniform) {
  const auto counts =
      CountsOf(DrawKeys({.rows = 10, .keys_a_call = 100'000, .calls = 1, .exponent = 0}));
  ASSERT_EQ(counts.size(), 10u);
  for (const auto& [key, count] : counts) EXPECT_NEAR(count, 10'000, 600) << key;
}

TEST(KeySequence, CallsComeAroundAgain) {
  const KeySequence sequence{.rows = 9, .keys_a_call = 2, .keys = {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(sequence.Call(1)[0], 3u);
  EXPECT_EQ(sequence.Call(1).size(), 2u);
  EXPECT_EQ(sequence.Call(5)[1], 6u);
}

class KeyFileTest : public ::testing::Test {
 protected:
  /// The contents of the file after its word `index` was set to `value`.
  absl::StatusOr<KeySequence> ReadWith(size_t index, uint64_t value) {
    std::string bytes = ReadFile(path_, 1 << 20).value();
    std::memcpy(bytes.data() + index * sizeof(value), &value, sizeof(value));
    EXPECT_THAT(WriteFileAtomically(path_, bytes), IsOk());
    return ReadKeyFile(path_);
  }

  testing::TempDir folder_;
  const std::string path_ = folder_.File("keys");
  const KeySequence written_ = DrawKeys({.rows = 50, .keys_a_call = 4, .calls = 3});
  void SetUp() override { ASSERT_THAT(WriteKeyFile(path_, written_), IsOk()); }
};

TEST_F(KeyFileTest, WhatIsWrittenIsRead) {
  const auto read = ReadKeyFile(path_);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->rows, 50u);
  EXPECT_EQ(read->keys_a_call, 4u);
  EXPECT_EQ(read->keys, written_.keys);
}

TEST(TableCallsTest, EveryKeyIsARowOfOneTable) {
  const KeySequence keys{.rows = 8, .keys_a_call = 3, .keys = {7, 2, 1, 0, 6, 3}};
  const TableCalls calls(keys, 3);
  const auto rows = [&](uint64_t call, uint64_t table) {
    const std::span<const uint64_t> all = calls.Rows(call, table);
    return std::vector<uint64_t>(all.begin(), all.end());
  };
  EXPECT_EQ(rows(0, 0), std::vector<uint64_t>());
  EXPECT_EQ(rows(0, 1), (std::vector<uint64_t>{2, 0}));
  EXPECT_EQ(rows(0, 2), (std::vector<uint64_t>{0}));
  EXPECT_EQ(rows(1, 0), (std::vector<uint64_t>{0, 2, 1}));
  EXPECT_EQ(rows(3, 0), rows(1, 0));  // after the last call, the first one comes again
}

TEST_F(KeyFileTest, AFileOfSomethingElseIsRefused) {
  EXPECT_THAT(ReadWith(0, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a file of keys")));
}

TEST_F(KeyFileTest, ACallWithoutKeysIsRefused) {
  EXPECT_THAT(ReadWith(2, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a file of keys")));
}

TEST_F(KeyFileTest, ACutFileIsRefused) {
  EXPECT_THAT(ReadWith(3, 4),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("do not hold 4 calls")));
  // In 64 bits 2^62 + 3 calls of 4 keys are 12 keys, as there are.
  EXPECT_THAT(ReadWith(3, (uint64_t{1} << 62) + 3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("do not hold")));
}

TEST_F(KeyFileTest, AKeyThatIsNoRowIsRefused) {
  EXPECT_THAT(ReadWith(kKeyFileHeaderWords + 1, 50),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the key 50")));
}

TEST_F(KeyFileTest, AFileThatIsNotThereIsNamed) {
  EXPECT_FALSE(ReadKeyFile(folder_.File("none")).ok());
}

}  // namespace
}  // namespace muster
