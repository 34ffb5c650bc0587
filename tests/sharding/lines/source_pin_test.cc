#include "sharding/lines/source_pin.h"

#include <algorithm>
#include <string>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

ReadAt Reader(const std::string& contents) {
  return [&contents](uint64_t offset, std::span<char> buffer) -> absl::StatusOr<size_t> {
    if (offset >= contents.size()) return 0;
    return contents.copy(buffer.data(), buffer.size(), offset);
  };
}

std::string Text(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + (i * 7 + i / 1000) % 26);
  return text;
}

TEST(SourcePinTest, SmallFilesAreSampledWhole) {
  EXPECT_TRUE(PinBlocks(0).empty());
  EXPECT_EQ(PinBlocks(1), (std::vector<PinBlock>{{0, 1}}));
  EXPECT_EQ(PinBlocks(4097), (std::vector<PinBlock>{{0, 4096}, {4096, 1}}));
  uint64_t covered = 0;
  for (const PinBlock& block : PinBlocks(64 * 4096)) {
    EXPECT_EQ(block.offset, covered);
    covered += block.bytes;
  }
  EXPECT_EQ(covered, 64u * 4096);
}

TEST(SourcePinTest, LargeFilesAreSampledFromFirstToLastBlock) {
  for (const uint64_t bytes : {uint64_t{64} * 4096 + 1, uint64_t{31} << 20, ~uint64_t{0}}) {
    const auto blocks = PinBlocks(bytes);
    ASSERT_EQ(blocks.size(), 64u);
    EXPECT_EQ(blocks.front().offset, 0u);
    EXPECT_EQ(blocks.back().offset + blocks.back().bytes, bytes);
    for (size_t i = 1; i < blocks.size(); ++i) {
      ASSERT_LT(blocks[i - 1].offset, blocks[i].offset);
      ASSERT_EQ(blocks[i].offset % kPinBlockBytes, 0u);
    }
  }
}

TEST(SourcePinTest, AChangeInTheSampleOrOfTheSizeChangesThePin) {
  const std::string text = Text(100'000);
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePin pin, PinSource(text.size(), Reader(text)));
  EXPECT_EQ(pin.bytes, text.size());
  for (const size_t at : {size_t{0}, size_t{50'000}, text.size() - 1}) {
    std::string changed = text;
    changed[at] ^= 1;
    MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePin other, PinSource(changed.size(), Reader(changed)));
    EXPECT_NE(other.hash, pin.hash) << "byte " << at;
  }
  std::string swapped = text;
  std::swap_ranges(swapped.begin(), swapped.begin() + 4096, swapped.begin() + 8192);
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePin other, PinSource(swapped.size(), Reader(swapped)));
  EXPECT_NE(other.hash, pin.hash);
  const std::string shorter = text.substr(0, text.size() - 1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePin cut, PinSource(shorter.size(), Reader(shorter)));
  EXPECT_NE(cut, pin);
}

TEST(SourcePinTest, NeverChanges) {
  // Golden: journals hold pins. 300,001 bytes is more than the sample.
  const std::string text = Text(300'001);
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePin pin, PinSource(text.size(), Reader(text)));
  EXPECT_EQ(pin.hash, 11276181664712325391u);
}

TEST(SourcePinTest, AFileThatShrinksWhileItIsReadIsAnError) {
  const std::string text = Text(5000);
  EXPECT_THAT(PinSource(6000, Reader(text)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("6000")));
  const ReadAt failing = [](uint64_t, std::span<char>) -> absl::StatusOr<size_t> {
    return absl::DataLossError("disk");
  };
  EXPECT_THAT(PinSource(10, failing), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("disk")));
}

}  // namespace
}  // namespace muster
