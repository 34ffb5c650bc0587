#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// The loops of the value encodings, compiled for every instruction set. frame.h says which value
/// becomes which bits; every instruction set gives the same bits. Pure.
namespace muster::wire {

/// `out: [in.size(), 2] bytes`, which may begin where `in` does.
void FloatsToHalfs(std::span<const float> in, std::byte* out);
void FloatsToBfloats(std::span<const float> in, std::byte* out);
/// `in: [out.size(), 2] bytes`.
void HalfsToFloats(const std::byte* in, std::span<float> out);
void BfloatsToFloats(const std::byte* in, std::span<float> out);

/// True if a magnitude's bits are in [limit, infinity).
bool AnyFiniteFrom(uint32_t limit, std::span<const float> values);

}  // namespace muster::wire
