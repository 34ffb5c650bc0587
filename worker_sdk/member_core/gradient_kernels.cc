#include "worker_sdk/member_core/gradient_kernels.h"

#include <bit>
#include <cmath>

#include "base/words/number_bits.h"

namespace muster::sdk {
namespace {

template <SumMode kMode>
bool AddFixedPointTo(std::span<const float> gradient, uint32_t fraction_bits,
                     std::span<int64_t> sum) {
  const double scale = std::ldexp(1.0, static_cast<int>(fraction_bits));
  const auto limit = static_cast<int32_t>(FixedPointLimitBits(scale));
  const float* from = gradient.data();
  int64_t* to = sum.data();
  const size_t size = gradient.size();
  int32_t differences = 0;  // negative if one of the differences is
  for (size_t i = 0; i < size; ++i) {
    differences |= limit - 1 - static_cast<int32_t>(MagnitudeBits(from[i]));
    // The addition is unsigned, because a bad number may have any value and must not overflow.
    const uint64_t before = kMode == SumMode::kStore ? 0 : static_cast<uint64_t>(to[i]);
    to[i] = static_cast<int64_t>(before + ToFixedPoint(from[i], scale));
  }
  return differences >= 0;
}

/// The nearest double, like a cast, but with operations that exist for vector registers. The two
/// halves of the integer become the low bits of 2^52 and of 2^84. Before that, 2^31 is added to the
/// upper half, so that it is positive.
double ToDouble(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  const auto low = std::bit_cast<double>((bits & 0xffffffffU) | std::bit_cast<uint64_t>(0x1p52));
  const auto high =
      std::bit_cast<double>((bits >> 32) ^ (std::bit_cast<uint64_t>(0x1p84) | 0x80000000U));
  return (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;
}

template <SumMode kMode>
bool AddFloatTo(std::span<const float> gradient, std::span<float> sum) {
  int32_t bad = 0;
  const size_t size = gradient.size();
  for (size_t i = 0; i < size; ++i) {
    const float value = kMode == SumMode::kStore ? gradient[i] : sum[i] + gradient[i];
    bad |= static_cast<int32_t>(!IsFinite(value));
    sum[i] = value;
  }
  return bad == 0;
}

}  // namespace

size_t AddFixedPoint(std::span<const float> gradient, uint32_t fraction_bits, SumMode mode,
                     std::span<int64_t> sum) {
  bool good = mode == SumMode::kStore
                  ? AddFixedPointTo<SumMode::kStore>(gradient, fraction_bits, sum)
                  : AddFixedPointTo<SumMode::kAdd>(gradient, fraction_bits, sum);
  if (good) return kNoElement;
  const uint32_t limit = FixedPointLimitBits(std::ldexp(1.0, static_cast<int>(fraction_bits)));
  size_t first = 0;
  while (MagnitudeBits(gradient[first]) < limit) ++first;
  return first;
}

size_t AddFloat(std::span<const float> gradient, SumMode mode, std::span<float> sum) {
  bool good = mode == SumMode::kStore ? AddFloatTo<SumMode::kStore>(gradient, sum)
                                      : AddFloatTo<SumMode::kAdd>(gradient, sum);
  return good ? kNoElement : NotFinite(sum);
}

size_t ToBfloat16(std::span<const float> from, std::span<uint16_t> to) {
  int32_t bad = 0;
  const size_t size = from.size();
  // Rounding turns numbers that are too large into infinity, and may turn NaN into a number. So
  // both are checked.
  const auto is_bad = [&](size_t i) {
    return static_cast<int32_t>(!IsFinite(FromBfloat16(to[i]))) |
           static_cast<int32_t>(!IsFinite(from[i]));
  };
  for (size_t i = 0; i < size; ++i) {
    to[i] = muster::ToBfloat16(from[i]);
    bad |= is_bad(i);
  }
  if (bad == 0) return kNoElement;
  size_t first = 0;
  while (is_bad(first) == 0) ++first;
  return first;
}

void FixedPointToFloat(std::span<const int64_t> from, uint32_t fraction_bits, std::span<float> to) {
  const double scale = std::ldexp(1.0, -static_cast<int>(fraction_bits));
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = static_cast<float>(ToDouble(from[i]) * scale);
  }
}

void Bfloat16ToFloat(std::span<const uint16_t> from, std::span<float> to) {
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = FromBfloat16(from[i]);
  }
}

size_t NotFinite(std::span<const float> values) {
  int32_t bad = 0;
  for (float value : values) bad |= static_cast<int32_t>(!IsFinite(value));
  if (bad == 0) return kNoElement;
  size_t first = 0;
  while (IsFinite(values[first])) ++first;
  return first;
}

}  // namespace muster::sdk
