#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "proto/wire/frame.h"
#include "tests/support/status_matchers.h"

namespace muster::wire {
namespace {

uint16_t Narrow(float value, Encoding encoding) {
  std::byte bytes[2];
  EncodeValues({&value, 1}, encoding, bytes);
  uint16_t narrow;
  std::memcpy(&narrow, bytes, 2);
  return narrow;
}

float Widen(uint16_t narrow, Encoding encoding) {
  std::byte bytes[2];
  std::memcpy(bytes, &narrow, 2);
  float value;
  DecodeValues(bytes, encoding, {&value, 1});
  return value;
}

TEST(ValuesTest, Float16Table) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Values and their binary16 forms, from the definition in IEEE 754-2008, section 3.4.
  const struct {
    float value;
    uint16_t half;
  } cases[] = {{0.0f, 0x0000},       {-0.0f, 0x8000},          {1.0f, 0x3c00},
               {-2.0f, 0xc000},      {65504.0f, 0x7bff},       {65519.99f, 0x7bff},
               {65520.0f, 0x7c00},   {1e30f, 0x7c00},          {0x1p-14f, 0x0400},
               {0x1p-24f, 0x0001},   {0x1p-25f, 0x0000},       {0x1.8p-25f, 0x0001},
               {0x1.8p-24f, 0x0002}, {0x1.ff8p-15f, 0x03ff},   {0x1.ffcp-15f, 0x0400},
               {0x1.002p0f, 0x3c00}, {0x1.006p0f, 0x3c02},     {kInfinity, 0x7c00},
               {-kInfinity, 0xfc00}, {0.333251953125f, 0x3555}};
  for (const auto& c : cases) {
    EXPECT_EQ(Narrow(c.value, Encoding::kFloat16), c.half) << c.value;
  }
  EXPECT_TRUE(std::isnan(Widen(Narrow(std::nanf(""), Encoding::kFloat16), Encoding::kFloat16)));
}

TEST(ValuesTest, EveryHalfAndBfloatSurvivesTheWayThereAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<uint16_t>(bits);
    for (const Encoding encoding : {Encoding::kFloat16, Encoding::kBfloat16}) {
      const float value = Widen(narrow, encoding);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(Widen(Narrow(value, encoding), encoding))) << bits;
      } else {
        EXPECT_EQ(Narrow(value, encoding), narrow) << bits;
      }
    }
  }
}

TEST(ValuesTest, NarrowingPicksTheNearestOfItsNeighbours) {
  Rng rng(2);
  for (int i = 0; i < 200'000; ++i) {
    const auto value = static_cast<float>((rng.Uniform() - 0.5) *
                                          std::ldexp(1.0, static_cast<int>(rng.Below(30)) - 20));
    for (const Encoding encoding : {Encoding::kFloat16, Encoding::kBfloat16}) {
      const uint16_t narrow = Narrow(value, encoding);
      const double error = std::abs(double{Widen(narrow, encoding)} - value);
      if ((narrow & 0x7fff) != 0) {
        EXPECT_LE(error, std::abs(double{Widen(narrow - 1, encoding)} - value)) << value;
      }
      EXPECT_LE(error, std::abs(double{Widen(narrow + 1, encoding)} - value)) << value;
    }
  }
}

TEST(ValuesTest, BfloatRoundsToEvenAndKeepsNaN) {
  EXPECT_EQ(Narrow(1.0f, Encoding::kBfloat16), 0x3f80);
  EXPECT_EQ(Narrow(std::bit_cast<float>(0x3f808000u), Encoding::kBfloat16), 0x3f80);
  EXPECT_EQ(Narrow(std::bit_cast<float>(0x3f818000u), Encoding::kBfloat16), 0x3f82);
  EXPECT_EQ(Narrow(std::numeric_limits<float>::max(), Encoding::kBfloat16), 0x7f80);
  EXPECT_TRUE(std::isnan(
      Widen(Narrow(std::bit_cast<float>(0x7f800001u), Encoding::kBfloat16), Encoding::kBfloat16)));
}

TEST(ValuesTest, WhatWouldBecomeInfiniteIsFound) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(LargestFinite(Encoding::kFloat16), 65504.0f);
  EXPECT_EQ(LargestFinite(Encoding::kBfloat16), std::bit_cast<float>(0x7f7f0000u));
  for (const Encoding encoding : {Encoding::kFloat32, Encoding::kFloat16, Encoding::kBfloat16}) {
    for (const float limit : {65520.0f, std::bit_cast<float>(0x7f7f8000u)}) {
      for (const float value : {limit, -limit, std::nextafter(limit, 0.0f), 0.0f, kInfinity,
                                -kInfinity, std::nanf(""), std::numeric_limits<float>::max()}) {
        const bool lost = std::isfinite(value) && encoding != Encoding::kFloat32 &&
                          std::isinf(Widen(Narrow(value, encoding), encoding));
        EXPECT_EQ(FirstUnencodable({&value, 1}, encoding), lost ? 0u : 1u) << value;
      }
    }
  }
  std::vector<float> values(5'000, 1.0f);
  EXPECT_EQ(FirstUnencodable(values, Encoding::kFloat16), values.size());
  values[4'097] = values[4'999] = -1e5f;
  EXPECT_EQ(FirstUnencodable(values, Encoding::kFloat16), 4'097u);
  EXPECT_EQ(FirstUnencodable(values, Encoding::kBfloat16), values.size());
}

TEST(ValuesTest, Float32IsCopied) {
  const std::vector<float> in = {1.5f, -0.0f, 1e-40f, std::numeric_limits<float>::infinity()};
  std::vector<std::byte> bytes(in.size() * BytesPerValue(Encoding::kFloat32));
  EncodeValues(in, Encoding::kFloat32, bytes);
  std::vector<float> out(in.size());
  DecodeValues(bytes, Encoding::kFloat32, out);
  EXPECT_EQ(std::memcmp(in.data(), out.data(), bytes.size()), 0);
}

TEST(ValuesTest, ManyValuesAreWhatTheyAreOneByOne) {
  Rng rng(7);
  std::vector<float> values;
  for (uint32_t i = 0; i < 100'003; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng.Next())));
    // Around what binary16 can hold.
    values.push_back(std::bit_cast<float>(0x38000000 + static_cast<uint32_t>(rng.Below(1u << 28))));
  }
  for (const Encoding encoding : {Encoding::kFloat16, Encoding::kBfloat16}) {
    std::vector<std::byte> narrow(2 * values.size());
    EncodeValues(values, encoding, narrow);
    std::vector<float> wide(values.size());
    DecodeValues(narrow, encoding, wide);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t one = Narrow(values[i], encoding);
      ASSERT_EQ(std::memcmp(&narrow[2 * i], &one, 2), 0) << values[i];
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(Widen(one, encoding)));
    }
    // A server narrows the rows of an answer where they are.
    std::vector<float> in_place = values;
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(in_place));
    EncodeValues(in_place, encoding, bytes.first(narrow.size()));
    EXPECT_EQ(std::memcmp(bytes.data(), narrow.data(), narrow.size()), 0);
  }
}

TEST(ValuesTest, AValueThatIsTooLargeIsFoundWhereverItIs) {
  std::vector<float> values(2'051, 65504);
  values[5] = std::numeric_limits<float>::infinity();  // stays what it is
  EXPECT_EQ(FirstUnencodable(values, Encoding::kFloat16), values.size());
  for (size_t at : {size_t{0}, size_t{1023}, size_t{1024}, values.size() - 1}) {
    const float before = std::exchange(values[at], -65520);
    EXPECT_EQ(FirstUnencodable(values, Encoding::kFloat16), at);
    EXPECT_EQ(FirstUnencodable(values, Encoding::kBfloat16), values.size());
    values[at] = before;
  }
}

}  // namespace
}  // namespace muster::wire
