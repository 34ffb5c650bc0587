// Highway compiles this once per instruction set, and chooses the best one for the machine at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "proto/wire/value_kernels.cc"
#include "hwy/detect_targets.h"
// AVX-512 does not help loops that wait for memory.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// Highway's headers come after foreach_target.h, by its rule.
#include "hwy/highway.h"
#include "proto/wire/value_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace muster::wire {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bits of binary32: infinity, one unit in the exponent, and the difference of the two exponents'
// biases.
constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint32_t kExponentUnit = 1u << 23;
constexpr uint32_t kHalfBias = (127u - 15u) * kExponentUnit;

/// Magnitudes are below 2^31, so they compare as signed numbers do.
template <typename Bits, typename Value>
HWY_INLINE auto AtLeast(Bits d, Value magnitude, uint32_t limit) {
  const hn::RebindToSigned<Bits> s;
  const auto below = hn::Set(s, static_cast<int32_t>(limit) - 1);
  return hn::RebindMask(d, hn::Gt(hn::BitCast(s, magnitude), below));
}

/// IEEE 754 binary16, round to nearest even; what overflows becomes infinity, NaN stays NaN.
struct ToHalf {
  template <typename Bits, typename Value>
  HWY_INLINE auto operator()(Bits d, Value bits) const {
    const hn::RebindToFloat<Bits> f;
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    // Below 2^-14, subnormal in binary16: one unit in the last place of 0.5f is the smallest
    // subnormal of binary16, so the addition rounds to it.
    const auto half = hn::Set(f, 0.5f);
    const auto small =
        hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(f, magnitude), half)), hn::BitCast(d, half));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1u));
    const auto normal = hn::ShiftRight<13>(
        hn::Sub(hn::Add(hn::Add(magnitude, hn::Set(d, 0xfffu)), odd), hn::Set(d, kHalfBias)));
    const auto large = hn::IfThenElse(AtLeast(d, magnitude, kInfinity + 1), hn::Set(d, 0x7e00u),
                                      hn::Set(d, 0x7c00u));
    const auto finite = hn::IfThenElse(AtLeast(d, magnitude, 0x38800000u), normal, small);
    return hn::Or(sign, hn::IfThenElse(AtLeast(d, magnitude, 0x47800000u), large, finite));
  }
};

/// The upper half of binary32, rounded as above.
struct ToBfloat {
  template <typename Bits, typename Value>
  HWY_INLINE auto operator()(Bits d, Value bits) const {
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    const auto upper = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(upper, hn::Set(d, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d, 0x7fffu)), odd));
    return hn::IfThenElse(AtLeast(d, magnitude, kInfinity + 1), hn::Or(upper, hn::Set(d, 0x40u)),
                          rounded);
  }
};

struct FromHalf {
  template <typename Bits, typename Value>
  HWY_INLINE auto operator()(Bits d, Value half) const {
    const hn::RebindToFloat<Bits> f;
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000u)));
    const auto shifted = hn::ShiftLeft<13>(hn::And(half, hn::Set(d, 0x7fffu)));
    const auto exponent = hn::And(shifted, hn::Set(d, 0x1fu << 23));
    const auto normal = hn::Add(shifted, hn::Set(d, kHalfBias));
    const auto infinite = hn::Add(normal, hn::Set(d, (128u - 16u) * kExponentUnit));
    const auto small = hn::BitCast(
        d,
        hn::Sub(hn::BitCast(f, hn::Add(normal, hn::Set(d, kExponentUnit))), hn::Set(f, 0x1p-14f)));
    const auto finite = hn::IfThenElse(hn::Eq(exponent, hn::Zero(d)), small, normal);
    return hn::Or(sign,
                  hn::IfThenElse(hn::Eq(exponent, hn::Set(d, 0x1fu << 23)), infinite, finite));
  }
};

struct FromBfloat {
  template <typename Bits, typename Value>
  HWY_INLINE auto operator()(Bits /*tag*/, Value bfloat) const {
    return hn::ShiftLeft<16>(bfloat);
  }
};

template <typename Bits, typename Convert>
HWY_INLINE void NarrowSome(Bits d, Convert convert, const float* in, uint16_t* out) {
  const hn::RebindToFloat<Bits> f;
  const hn::RebindToSigned<Bits> s;
  const hn::Rebind<uint16_t, Bits> narrow;
  const auto bits = convert(d, hn::BitCast(d, hn::LoadU(f, in)));
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(s, bits)), narrow, out);
}

template <typename Convert>
HWY_INLINE void Narrow(Convert convert, std::span<const float> in, std::byte* bytes) {
  const hn::ScalableTag<uint32_t> d;
  const hn::CappedTag<uint32_t, 1> one;
  auto* const out = reinterpret_cast<uint16_t*>(bytes);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= in.size(); i += hn::Lanes(d)) {
    NarrowSome(d, convert, in.data() + i, out + i);
  }
  for (; i < in.size(); ++i) NarrowSome(one, convert, in.data() + i, out + i);
}

template <typename Bits, typename Convert>
HWY_INLINE void WidenSome(Bits d, Convert convert, const uint16_t* in, float* out) {
  const hn::RebindToFloat<Bits> f;
  const hn::Rebind<uint16_t, Bits> narrow;
  const auto bits = convert(d, hn::PromoteTo(d, hn::LoadU(narrow, in)));
  hn::StoreU(hn::BitCast(f, bits), f, out);
}

template <typename Convert>
HWY_INLINE void Widen(Convert convert, const std::byte* bytes, std::span<float> out) {
  const hn::ScalableTag<uint32_t> d;
  const hn::CappedTag<uint32_t, 1> one;
  const auto* const in = reinterpret_cast<const uint16_t*>(bytes);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= out.size(); i += hn::Lanes(d)) {
    WidenSome(d, convert, in + i, out.data() + i);
  }
  for (; i < out.size(); ++i) WidenSome(one, convert, in + i, out.data() + i);
}

void ToHalfKernel(std::span<const float> in, std::byte* out) {
  Narrow(ToHalf(), in, out);
}
void ToBfloatKernel(std::span<const float> in, std::byte* out) {
  Narrow(ToBfloat(), in, out);
}
void FromHalfKernel(const std::byte* in, std::span<float> out) {
  Widen(FromHalf(), in, out);
}
void FromBfloatKernel(const std::byte* in, std::span<float> out) {
  Widen(FromBfloat(), in, out);
}

template <typename Bits>
HWY_INLINE auto FiniteFrom(Bits d, uint32_t limit, const float* values) {
  const hn::RebindToFloat<Bits> f;
  const auto magnitude = hn::And(hn::BitCast(d, hn::LoadU(f, values)), hn::Set(d, 0x7fffffffu));
  return hn::AndNot(hn::VecFromMask(d, AtLeast(d, magnitude, kInfinity)),
                    hn::VecFromMask(d, AtLeast(d, magnitude, limit)));
}

bool AnyFiniteFromKernel(uint32_t limit, std::span<const float> values) {
  const hn::ScalableTag<uint32_t> d;
  const hn::CappedTag<uint32_t, 1> one;
  auto found = hn::Zero(d);
  auto last_found = hn::Zero(one);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= values.size(); i += hn::Lanes(d)) {
    found = hn::Or(found, FiniteFrom(d, limit, values.data() + i));
  }
  for (; i < values.size(); ++i) {
    last_found = hn::Or(last_found, FiniteFrom(one, limit, values.data() + i));
  }
  return !hn::AllTrue(d, hn::Eq(found, hn::Zero(d))) || hn::GetLane(last_found) != 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace muster::wire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::wire {

HWY_EXPORT(ToHalfKernel);
HWY_EXPORT(ToBfloatKernel);
HWY_EXPORT(FromHalfKernel);
HWY_EXPORT(FromBfloatKernel);
HWY_EXPORT(AnyFiniteFromKernel);

void FloatsToHalfs(std::span<const float> in, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(ToHalfKernel)(in, out);
}
void FloatsToBfloats(std::span<const float> in, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(ToBfloatKernel)(in, out);
}
void HalfsToFloats(const std::byte* in, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(FromHalfKernel)(in, out);
}
void BfloatsToFloats(const std::byte* in, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(FromBfloatKernel)(in, out);
}
bool AnyFiniteFrom(uint32_t limit, std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(AnyFiniteFromKernel)(limit, values);
}

}  // namespace muster::wire
#endif  // HWY_ONCE
