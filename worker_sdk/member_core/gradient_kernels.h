#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// The loops over the elements of gradients and their sums. Each runs over all elements and returns
/// the position of the first that it cannot represent, or kNone. The spans of a call have equal
/// lengths. Pure.
namespace muster::sdk {

inline constexpr size_t kNoElement = SIZE_MAX;

/// Whether a loop begins a sum or adds to it.
enum class SumMode : uint8_t { kStore, kAdd };

/// The fixed-point numbers of so many minibatches have a sum that int64 holds, in any order,
/// because each is below kFixedPointLimit (base/words/number_bits.h).
inline constexpr uint64_t kFixedPointMinibatchesMax = 8'192;

/// Adds round(gradient * 2^fraction_bits), ties to even. NaN, infinity and numbers from
/// kFixedPointLimit on are bad; at and behind a bad element, `sum` is of no use.
size_t AddFixedPoint(std::span<const float> gradient, uint32_t fraction_bits, SumMode mode,
                     std::span<int64_t> sum);
/// Sums that are NaN or infinite are bad.
size_t AddFloat(std::span<const float> gradient, SumMode mode, std::span<float> sum);
/// Rounds to the nearest bfloat16, ties to even. What becomes infinite or NaN is bad.
size_t ToBfloat16(std::span<const float> from, std::span<uint16_t> to);

/// The sum of all members as the trainer gets it.
void FixedPointToFloat(std::span<const int64_t> from, uint32_t fraction_bits, std::span<float> to);
void Bfloat16ToFloat(std::span<const uint16_t> from, std::span<float> to);
/// The first NaN or infinity.
size_t NotFinite(std::span<const float> values);

}  // namespace muster::sdk
