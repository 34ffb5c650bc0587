#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "proto/wire/frame.h"

namespace muster::wire {
namespace {

constexpr uint32_t kFloatInfinity = 0x7f800000;

/// IEEE 754 binary16, round to nearest even; what overflows becomes infinity, NaN stays NaN.
uint16_t ToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x47800000) {  // 65536 and above
    return static_cast<uint16_t>(sign | (magnitude > kFloatInfinity ? 0x7e00 : 0x7c00));
  }
  if (magnitude < 0x38800000) {  // below 2^-14: subnormal in binary16
    // One unit in the last place of 0.5f is the smallest subnormal of binary16, so the addition
    // rounds to it.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  magnitude += 0xfff + odd;
  magnitude -= (127u - 15u) << 23;
  return static_cast<uint16_t>(sign | (magnitude >> 13));
}

float FromHalf(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  uint32_t bits = (half & 0x7fffu) << 13;
  const uint32_t exponent = bits & (0x1fu << 23);
  bits += (127u - 15u) << 23;
  if (exponent == 0x1fu << 23) {
    bits += (128u - 16u) << 23;
  } else if (exponent == 0) {
    bits += 1u << 23;
    bits = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) - 0x1p-14f);
  }
  return std::bit_cast<float>(bits | sign);
}

uint16_t ToBfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > kFloatInfinity) return static_cast<uint16_t>((bits >> 16) | 0x0040);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float FromBfloat(uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<uint32_t>(bfloat) << 16);
}

template <uint16_t (*Convert)(float)>
void Narrow(std::span<const float> in, std::byte* out) {
  for (size_t i = 0; i < in.size(); ++i) {
    const uint16_t narrow = Convert(in[i]);
    std::memcpy(out + 2 * i, &narrow, 2);
  }
}

template <float (*Convert)(uint16_t)>
void Widen(const std::byte* in, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t narrow;
    std::memcpy(&narrow, in + 2 * i, 2);
    out[i] = Convert(narrow);
  }
}

}  // namespace

std::string_view NameOf(Encoding encoding) {
  if (encoding == Encoding::kFloat16) return "float16";
  return encoding == Encoding::kBfloat16 ? "bfloat16" : "float32";
}

float LargestFinite(Encoding encoding) {
  if (encoding == Encoding::kFloat16) return FromHalf(0x7bff);
  return encoding == Encoding::kBfloat16 ? FromBfloat(0x7f7f) : std::numeric_limits<float>::max();
}

size_t FirstUnencodable(std::span<const float> values, Encoding encoding) {
  if (encoding == Encoding::kFloat32) return values.size();
  // The smallest magnitude that rounds to infinity: half a unit above the largest finite value.
  const uint32_t limit = encoding == Encoding::kFloat16 ? 0x477ff000 : 0x7f7f8000;
  const auto beyond = [limit](float value) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffff;
    return magnitude - limit < kFloatInfinity - limit;  // unsigned: in [limit, infinity)
  };
  constexpr size_t kBlock = 1024;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::span<const float> block =
        values.subspan(begin, std::min(kBlock, values.size() - begin));
    bool bad = false;  // or-ing lets the compiler vectorise the common case
    for (const float value : block) bad |= beyond(value);
    if (!bad) continue;
    return begin + static_cast<size_t>(std::ranges::find_if(block, beyond) - block.begin());
  }
  return values.size();
}

size_t BytesPerValue(Encoding encoding) {
  return encoding == Encoding::kFloat32 ? 4 : 2;
}

void EncodeValues(std::span<const float> in, Encoding encoding, std::span<std::byte> out) {
  MUSTER_CHECK(out.size() == in.size() * BytesPerValue(encoding));
  if (in.empty()) return;
  switch (encoding) {
    case Encoding::kFloat32:
      std::memcpy(out.data(), in.data(), in.size_bytes());
      return;
    case Encoding::kFloat16:
      return Narrow<ToHalf>(in, out.data());
    case Encoding::kBfloat16:
      return Narrow<ToBfloat>(in, out.data());
  }
}

void DecodeValues(std::span<const std::byte> in, Encoding encoding, std::span<float> out) {
  MUSTER_CHECK(in.size() == out.size() * BytesPerValue(encoding));
  if (in.empty()) return;
  switch (encoding) {
    case Encoding::kFloat32:
      std::memcpy(out.data(), in.data(), in.size());
      return;
    case Encoding::kFloat16:
      return Widen<FromHalf>(in.data(), out);
    case Encoding::kBfloat16:
      return Widen<FromBfloat>(in.data(), out);
  }
}

}  // namespace muster::wire
