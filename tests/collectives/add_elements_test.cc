#include "collectives/add_elements.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace muster::collectives {
namespace {

template <typename T>
std::vector<T> Added(SumType type, const std::vector<T>& from, std::vector<T> to) {
  AddElements(type, std::as_bytes(std::span(from)), std::as_writable_bytes(std::span(to)));
  return to;
}

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// As Added, with a sum in other memory, and one side that is not aligned.
template <typename T>
std::vector<std::byte> AddedApart(SumType type, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<std::byte> moved = BytesOf(a);
  moved.insert(moved.begin(), std::byte{0});
  std::vector<T> sum(b.size());
  AddElements(type, std::span(moved).subspan(1), std::as_bytes(std::span(b)),
              std::as_writable_bytes(std::span(sum)));
  return BytesOf(sum);
}

/// Of a number that bfloat16 has.
uint16_t Half(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

TEST(AddElementsTest, EveryElementIsAddedAtAnyLength) {
  for (size_t count = 0; count < 70; ++count) {
    std::vector<float> floats, more_floats;
    std::vector<int64_t> whole, more_whole;
    std::vector<uint16_t> halves, more_halves;
    for (size_t i = 0; i < count; ++i) {
      floats.push_back(static_cast<float>(i) + 0.25f), more_floats.push_back(100);
      whole.push_back(static_cast<int64_t>(i)), more_whole.push_back(-1000);
      halves.push_back(Half(static_cast<float>(i))), more_halves.push_back(Half(-1));
    }
    EXPECT_EQ(AddedApart(SumType::kFloat32, more_floats, floats),
              BytesOf(Added(SumType::kFloat32, more_floats, floats)));
    EXPECT_EQ(AddedApart(SumType::kInt64, more_whole, whole),
              BytesOf(Added(SumType::kInt64, more_whole, whole)));
    EXPECT_EQ(AddedApart(SumType::kBfloat16, more_halves, halves),
              BytesOf(Added(SumType::kBfloat16, more_halves, halves)));
    floats = Added(SumType::kFloat32, more_floats, floats);
    whole = Added(SumType::kInt64, more_whole, whole);
    halves = Added(SumType::kBfloat16, more_halves, halves);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(floats[i], static_cast<float>(i) + 100.25f);
      EXPECT_EQ(whole[i], static_cast<int64_t>(i) - 1000);
      EXPECT_EQ(halves[i], Half(static_cast<float>(i) - 1));
    }
  }
}

TEST(AddElementsTest, IntegersWrapAround) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Added<int64_t>(SumType::kInt64, {1}, {most}),
            (std::vector<int64_t>{std::numeric_limits<int64_t>::min()}));
}

TEST(AddElementsTest, Bfloat16IsRoundedToNearestEven) {
  // Bfloat16 has 8 bits: at 256, numbers are 2 apart.
  EXPECT_EQ(Added<uint16_t>(SumType::kBfloat16, {Half(1)}, {Half(256)})[0], Half(256));
  EXPECT_EQ(Added<uint16_t>(SumType::kBfloat16, {Half(1)}, {Half(258)})[0], Half(260));
  EXPECT_EQ(Added<uint16_t>(SumType::kBfloat16, {Half(1.5)}, {Half(256)})[0], Half(258));
  const uint16_t largest = 0x7f7f;
  EXPECT_EQ(Added<uint16_t>(SumType::kBfloat16, {largest}, {largest})[0],
            Half(std::numeric_limits<float>::infinity()));
  const uint16_t nan = Added<uint16_t>(SumType::kBfloat16, {0x7fff}, {Half(1)})[0];
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(static_cast<uint32_t>(nan) << 16)));
}

TEST(AddElementsTest, OnlySomeTypesAreSummed) {
  EXPECT_EQ(SumTypeOf(GroupDtype::kFixedPoint), SumType::kInt64);
  EXPECT_EQ(SumTypeOf(GroupDtype::kBfloat16), SumType::kBfloat16);
  EXPECT_FALSE(SumTypeOf(GroupDtype::kBytes).has_value());
  EXPECT_FALSE(SumTypeOf(GroupDtype::kFloat64).has_value());
}

}  // namespace
}  // namespace muster::collectives
