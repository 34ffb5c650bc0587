#include "base/words/number_bits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace muster {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(NumberBitsTest, WhatIsFinite) {
  for (const float value : {0.0F, -0.0F, 1e-45F, -std::numeric_limits<float>::max()}) {
    EXPECT_TRUE(IsFinite(value)) << value;
  }
  for (const float value : {kInfinity, -kInfinity, kNan, -kNan}) EXPECT_FALSE(IsFinite(value));
}

TEST(NumberBitsTest, Bfloat16IsTheNearestAndOfTwoTheEvenOne) {
  EXPECT_EQ(FromBfloat16(ToBfloat16(1.0F)), 1.0F);
  EXPECT_EQ(ToBfloat16(0x1.01p0F), 0x3f80) << "a tie";
  EXPECT_EQ(ToBfloat16(0x1.03p0F), 0x3f82) << "a tie";
  EXPECT_EQ(ToBfloat16(-0x1.010002p0F), 0xbf81);
  EXPECT_EQ(FromBfloat16(ToBfloat16(std::numeric_limits<float>::max())), kInfinity);
}

TEST(NumberBitsTest, FixedPointIsTheNearestAndOfTwoTheEvenOne) {
  const auto fixed = [](float value) { return static_cast<int64_t>(ToFixedPoint(value, 4)); };
  EXPECT_EQ(fixed(2.5F), 10);
  EXPECT_EQ(fixed(0.125F), 0) << "a tie";
  EXPECT_EQ(fixed(-0.375F), -2) << "a tie";
  EXPECT_EQ(fixed(-0x1p47F), -(int64_t{1} << 49));
}

TEST(NumberBitsTest, FixedPointEndsAtItsLimit) {
  const unsigned limit = FixedPointLimitBits(1024);
  EXPECT_LT(MagnitudeBits(-0x1.fffffep39F), limit);
  for (const float value : {0x1p40F, -0x1p40F, kInfinity, kNan}) {
    EXPECT_GE(MagnitudeBits(value), limit) << value;
  }
}

}  // namespace
}  // namespace muster
