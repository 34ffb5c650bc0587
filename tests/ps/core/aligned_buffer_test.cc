#include "ps/core/aligned_buffer.h"

#include <array>
#include <cstring>

#include <cstdint>
#include <limits>
#include <utility>

#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

TEST(AlignedBufferTest, IsAlignedAtEverySizeAndKeepsItsMemory) {
  AlignedBuffer buffer;
  for (size_t bytes : {1u, 255u, 4096u, (1u << 20) + 8}) {
    ASSERT_TRUE(buffer.Resize(bytes));
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment, 0u);
  }
  const std::byte* const data = buffer.data();
  ASSERT_TRUE(buffer.Resize(8));
  EXPECT_EQ(buffer.data(), data);
  EXPECT_EQ(buffer.words().size(), 1u);
  EXPECT_EQ(buffer.floats().size(), 2u);
}

TEST(AlignedBufferTest, GivesItsMemoryBackPieceByPiece) {
  constexpr size_t kBytes = 64u << 20, kPiece = 8u << 20;
  AlignedBuffer buffer;
  ASSERT_TRUE(buffer.Resize(kBytes));
  std::memset(buffer.data(), 1, kBytes);
  size_t pieces = 1;
  for (; !buffer.ReleaseSome(kPiece); ++pieces) {
    ASSERT_LE(pieces, kBytes / kPiece);
    EXPECT_EQ(buffer.data()[0], std::byte{1}) << "what is left is untouched";
  }
  EXPECT_EQ(pieces, kBytes / kPiece);
  EXPECT_EQ(buffer.capacity(), 0u);
  EXPECT_TRUE(buffer.ReleaseSome(kPiece)) << "nothing";
  EXPECT_TRUE(buffer.Resize(100));
}

TEST(AlignedBufferTest, MemoryThatIsNotToBeHadIsAnAnswerNotACrash) {
  if (muster::testing::kSanitized) GTEST_SKIP() << "sanitizers end the process at such a request";
  AlignedBuffer buffer;
  ASSERT_TRUE(buffer.Resize(16));
  EXPECT_FALSE(buffer.Resize(uint64_t{1} << 60));
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_TRUE(buffer.Resize(16));
}

TEST(AlignedBufferTest, UsesLentMemoryAsLongAsItIsLargeEnough) {
  alignas(float) std::array<std::byte, 32> memory{};
  AlignedBuffer buffer = AlignedBuffer::Lent(memory);
  ASSERT_TRUE(buffer.Resize(32));
  EXPECT_TRUE(buffer.lent());
  EXPECT_EQ(buffer.data(), memory.data());
  buffer.floats()[7] = 3;
  ASSERT_TRUE(buffer.Own());
  EXPECT_FALSE(buffer.lent());
  EXPECT_NE(buffer.data(), memory.data());
  EXPECT_EQ(buffer.floats()[7], 3);

  buffer = AlignedBuffer::Lent(memory);
  ASSERT_TRUE(buffer.Resize(33));
  EXPECT_FALSE(buffer.lent());
  std::memset(buffer.data(), 0xff, 33);
  EXPECT_EQ(memory[0], std::byte{0});

  buffer = AlignedBuffer::Lent({});
  ASSERT_TRUE(buffer.Resize(0));
  ASSERT_TRUE(buffer.Own());
  EXPECT_EQ(buffer.size(), 0u);
}

TEST(AlignedBufferTest, MovesItsMemory) {
  AlignedBuffer from;
  ASSERT_TRUE(from.Resize(16));
  const std::byte* const data = from.data();
  AlignedBuffer to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(to.size(), 16u);
}

}  // namespace
}  // namespace muster::ps
