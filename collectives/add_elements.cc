#include "collectives/add_elements.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/words/number_bits.h"

namespace muster::collectives {
namespace {

struct Bfloat16 {
  uint16_t bits;
};

inline float Add(float a, float b) {
  return a + b;
}
inline uint64_t Add(uint64_t a, uint64_t b) {
  return a + b;
}
inline Bfloat16 Add(Bfloat16 a, Bfloat16 b) {
  const float sum = FromBfloat16(a.bits) + FromBfloat16(b.bits);
  const uint32_t nan =
      (std::bit_cast<uint32_t>(sum) >> 16) | 0x40;  // rounding could make it infinite
  return {MagnitudeBits(sum) > 0x7f800000 ? static_cast<uint16_t>(nan) : ToBfloat16(sum)};
}

// Simple enough for the compiler to use vectors: CMakeLists.txt compiles this file with -O3.
template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
void AddAll(std::span<const std::byte> from, std::span<std::byte> to) {
  const std::byte* __restrict in = from.data();
  T* __restrict out = reinterpret_cast<T*>(to.data());
  const size_t count = to.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) out[i] = Add(out[i], Load<T>(in + i * sizeof(T)));
}

template <typename T>
void AddAll(std::span<const std::byte> a, std::span<const std::byte> b, std::span<std::byte> sum) {
  const std::byte* __restrict first = a.data();
  const T* __restrict second = reinterpret_cast<const T*>(b.data());
  T* __restrict out = reinterpret_cast<T*>(sum.data());
  const size_t count = sum.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) out[i] = Add(Load<T>(first + i * sizeof(T)), second[i]);
}

}  // namespace

std::optional<SumType> SumTypeOf(GroupDtype dtype) {
  switch (dtype) {
    case GroupDtype::kFloat32:
      return SumType::kFloat32;
    case GroupDtype::kBfloat16:
      return SumType::kBfloat16;
    case GroupDtype::kInt64:
    case GroupDtype::kFixedPoint:
      return SumType::kInt64;
    case GroupDtype::kFloat64:
    case GroupDtype::kBytes:
      break;
  }
  return std::nullopt;
}

size_t ElementBytes(SumType type) {
  switch (type) {
    case SumType::kFloat32:
      return sizeof(float);
    case SumType::kBfloat16:
      return sizeof(Bfloat16);
    case SumType::kInt64:
      break;
  }
  return sizeof(uint64_t);
}

void AddElements(SumType type, std::span<const std::byte> from, std::span<std::byte> to) {
  MUSTER_CHECK(from.size() == to.size() && from.size() % ElementBytes(type) == 0);
  switch (type) {
    case SumType::kFloat32:
      return AddAll<float>(from, to);
    case SumType::kBfloat16:
      return AddAll<Bfloat16>(from, to);
    case SumType::kInt64:
      return AddAll<uint64_t>(from, to);
  }
}

void AddElements(SumType type, std::span<const std::byte> a, std::span<const std::byte> b,
                 std::span<std::byte> sum) {
  MUSTER_CHECK(a.size() == sum.size() && b.size() == sum.size() &&
               sum.size() % ElementBytes(type) == 0);
  switch (type) {
    case SumType::kFloat32:
      return AddAll<float>(a, b, sum);
    case SumType::kBfloat16:
      return AddAll<Bfloat16>(a, b, sum);
    case SumType::kInt64:
      return AddAll<uint64_t>(a, b, sum);
  }
}

}  // namespace muster::collectives
