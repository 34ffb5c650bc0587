#include "base/checksum/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

/// Bit by bit, from the definition.
uint32_t SlowCrc32c(std::string_view text) {
  uint32_t crc = ~0u;
  for (const char letter : text) {
    crc ^= static_cast<uint8_t>(letter);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

std::string Letters(size_t bytes) {
  std::string text(bytes, 0);
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 1000);
  return text;
}

TEST(Crc32cTest, IsThatOfRfc3720) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, OfAnyLengthIsThatOfTheDefinition) {
  for (const size_t bytes : {1, 7, 8, 9, 63, 24'575, 24'576, 24'577, 100'003}) {
    const std::string text = Letters(bytes);
    EXPECT_EQ(Crc32c(text), SlowCrc32c(text)) << bytes;
    EXPECT_EQ(Crc32c(text.substr(1)), SlowCrc32c(text.substr(1))) << bytes;
  }
}

TEST(Crc32cTest, ContinuesAndJoins) {
  const std::string text = Letters(50'000);
  for (const size_t cut : {0, 1, 1000, 49'999, 50'000}) {
    const std::string first = text.substr(0, cut), second = text.substr(cut);
    EXPECT_EQ(Crc32c(std::as_bytes(std::span(second)), Crc32c(first)), Crc32c(text)) << cut;
    EXPECT_EQ(JoinCrc32c(Crc32c(first), Crc32c(second), second.size()), Crc32c(text)) << cut;
  }
}

TEST(Crc32cTest, JoinsPiecesOfAnyLength) {
  // One join over 2^33 bytes is two joins over half of it.
  const uint64_t half = uint64_t{1} << 32;
  EXPECT_EQ(JoinCrc32c(0x12345678, 0, 2 * half),
            JoinCrc32c(JoinCrc32c(0x12345678, 0, half), 0, half));
}

}  // namespace
}  // namespace muster
