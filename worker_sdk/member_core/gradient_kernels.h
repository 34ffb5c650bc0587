#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Loops over the elements of gradients and their sums. Each handles all elements and returns the
/// position of the first element that it cannot represent, or kNoElement. The spans of a call have
/// equal lengths. Pure.
namespace muster::sdk {

inline constexpr size_t kNoElement = SIZE_MAX;

/// Whether a loop begins a sum or adds to it.
enum class SumMode : uint8_t { kStore, kAdd };

/// int64 can hold the sum of this many fixed-point numbers, in any order, because each is below
/// kFixedPointLimit (base/words/number_bits.h).
inline constexpr uint64_t kFixedPointMinibatchesMax = 8'192;

/// Adds round(gradient * 2^fraction_bits), ties to even. NaN, infinity and numbers from
/// kFixedPointLimit on are bad. From the first bad element on, `sum` is useless.
size_t AddFixedPoint(std::span<const float> gradient, uint32_t fraction_bits, SumMode mode,
                     std::span<int64_t> sum);
/// Sums are bad if they are NaN or infinite.
size_t AddFloat(std::span<const float> gradient, SumMode mode, std::span<float> sum);
/// Rounds to the nearest bfloat16, ties to even. Results are bad if they are infinite or NaN.
size_t ToBfloat16(std::span<const float> from, std::span<uint16_t> to);

/// Converts the sum of all members into the form that the trainer gets.
void FixedPointToFloat(std::span<const int64_t> from, uint32_t fraction_bits, std::span<float> to);
void Bfloat16ToFloat(std::span<const uint16_t> from, std::span<float> to);
/// The position of the first NaN or infinity.
size_t NotFinite(std::span<const float> values);

}  // namespace muster::sdk
