#include "ps/net/internal/spare_buffers.h"

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

AlignedBuffer Buffer(size_t bytes) {
  AlignedBuffer buffer;
  EXPECT_TRUE(buffer.Resize(bytes));
  return buffer;
}

TEST(SpareBuffersTest, GivesOutWhatItKept) {
  SpareBuffers spares(4u << 20);
  EXPECT_EQ(spares.Take().capacity(), 0u);
  AlignedBuffer buffer = Buffer(1u << 20);
  const std::byte* const at = buffer.data();
  EXPECT_EQ(spares.Keep(std::move(buffer)).capacity(), 0u);
  EXPECT_EQ(spares.bytes(), 1u << 20);
  EXPECT_EQ(spares.Take().data(), at);
  EXPECT_EQ(spares.bytes(), 0u);
}

TEST(SpareBuffersTest, HandsBackWhatIsTooMuch) {
  SpareBuffers spares(3u << 20);
  EXPECT_EQ(spares.Keep(Buffer(2u << 20)).capacity(), 0u);
  EXPECT_EQ(spares.Keep(Buffer(2u << 20)).capacity(), 2u << 20);
  EXPECT_EQ(spares.Keep(AlignedBuffer()).capacity(), 0u);
  EXPECT_EQ(spares.bytes(), 2u << 20);
}

}  // namespace
}  // namespace muster::ps
