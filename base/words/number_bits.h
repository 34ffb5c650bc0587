#pragma once

/// How gradients and their sums are represented and rounded. GPUs run this code, too, so it has no
/// includes, and nothing that one of the compilers lacks. Pure.
namespace muster {

constexpr unsigned MagnitudeBits(float value) {
  return __builtin_bit_cast(unsigned, value) & 0x7fffffffU;
}
constexpr bool IsFinite(float value) {
  return (__builtin_bit_cast(unsigned, value) & 0x7f800000U) != 0x7f800000U;
}

/// The upper half of a float32, rounded to the nearest, ties to even. Large numbers become
/// infinite; NaN may do so.
constexpr unsigned short ToBfloat16(float value) {
  const auto bits = __builtin_bit_cast(unsigned, value);
  return static_cast<unsigned short>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}
constexpr float FromBfloat16(unsigned short bits) {
  return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16);
}

/// Fixed-point numbers are below this limit, in units of 2^-fraction_bits.
constexpr double kFixedPointLimit = 0x1p50;
/// The magnitude of the first float32 that is too large for fixed point. `scale` is
/// 2^fraction_bits.
constexpr unsigned FixedPointLimitBits(double scale) {
  return MagnitudeBits(static_cast<float>(kFixedPointLimit / scale));
}
/// round(value * scale), ties to even, if the value is below the limit. Otherwise the result is
/// useless.
constexpr unsigned long ToFixedPoint(float value, double scale) {
  // A double near 2^52 has no fraction bits. So adding this number rounds to an integer, ties to
  // even, and the low bits hold the integer. This works for magnitudes below 2^51.
  constexpr double kRounder = 0x1.8p52;
  return __builtin_bit_cast(unsigned long, static_cast<double>(value) * scale + kRounder) -
         __builtin_bit_cast(unsigned long, kRounder);
}

}  // namespace muster
