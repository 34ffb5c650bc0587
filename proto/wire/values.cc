#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "proto/wire/frame.h"
#include "proto/wire/value_kernels.h"

namespace muster::wire {
namespace {

constexpr uint32_t kFloatInfinity = 0x7f800000;

/// Half a unit above the largest finite value: the smallest magnitude that rounds to infinity.
uint32_t FirstBeyond(Encoding encoding) {
  return encoding == Encoding::kFloat16 ? 0x477ff000 : 0x7f7f8000;
}

}  // namespace

std::string_view NameOf(Encoding encoding) {
  if (encoding == Encoding::kFloat16) return "float16";
  return encoding == Encoding::kBfloat16 ? "bfloat16" : "float32";
}

float LargestFinite(Encoding encoding) {
  if (encoding == Encoding::kFloat16) return 0x1.ffcp15f;
  return encoding == Encoding::kBfloat16 ? 0x1.fep127f : std::numeric_limits<float>::max();
}

size_t FirstUnencodable(std::span<const float> values, Encoding encoding) {
  if (encoding == Encoding::kFloat32) return values.size();
  const uint32_t limit = FirstBeyond(encoding);
  const auto beyond = [limit](float value) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffff;
    return magnitude >= limit && magnitude < kFloatInfinity;
  };
  constexpr size_t kBlock = 1024;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::span<const float> block =
        values.subspan(begin, std::min(kBlock, values.size() - begin));
    if (!AnyFiniteFrom(limit, block)) continue;
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
      return FloatsToHalfs(in, out.data());
    case Encoding::kBfloat16:
      return FloatsToBfloats(in, out.data());
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
      return HalfsToFloats(in.data(), out);
    case Encoding::kBfloat16:
      return BfloatsToFloats(in.data(), out);
  }
}

}  // namespace muster::wire
