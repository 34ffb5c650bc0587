#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "proto/messages/group_control.h"

namespace muster::collectives {

/// How a bucket is added; kFixedPoint is added as kInt64.
enum class SumType : uint8_t { kFloat32 = 0, kBfloat16 = 1, kInt64 = 2 };

/// Nothing for types that are not summed.
std::optional<SumType> SumTypeOf(GroupDtype dtype);
size_t ElementBytes(SumType type);

/// to[i] += from[i], for all elements; both have the same size, a multiple of ElementBytes, and are
/// aligned to it; only `from` need not be. kInt64 wraps around. kBfloat16 is added as float32 and
/// rounded to nearest even. Apart from NaN, whose bits may differ, a + b and b + a are the same
/// bits on every machine.
void AddElements(SumType type, std::span<const std::byte> from, std::span<std::byte> to);
/// sum[i] = a[i] + b[i]: the same bits as of copying `a` and adding `b` to it. `a` need not be
/// aligned, and each of its bytes is read once, so another process may change it meanwhile.
void AddElements(SumType type, std::span<const std::byte> a, std::span<const std::byte> b,
                 std::span<std::byte> sum);

}  // namespace muster::collectives
