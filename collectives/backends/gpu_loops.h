#pragma once

/// The loops over gradients and sums that run on a GPU, an element at a time: the bits of
/// worker_sdk/groups/sum_kernels.h. gpu_kernels.cc has them as text for CUDA's driver, which
/// `gpu_kernels.py` makes of this file with Clang; tests run them on the processor. So there are no
/// includes here, and nothing that either compiler lacks. Pure.
#ifdef __NVPTX__
#define MUSTER_GPU_GLOBAL __attribute__((address_space(1)))
#else
#define MUSTER_GPU_GLOBAL
#endif

namespace muster::collectives::gpu {

using Word = unsigned long;
using Fixed = long;
using Half = unsigned short;
using Bits = unsigned int;
static_assert(sizeof(Word) == 8 && sizeof(Fixed) == 8 && sizeof(Half) == 2 && sizeof(Bits) == 4);

using Floats = const MUSTER_GPU_GLOBAL float*;
using FloatsOut = MUSTER_GPU_GLOBAL float*;

constexpr double kRounder = 0x1.8p52;
/// No element is bad.
constexpr Word kNone = ~Word{0};

inline Bits BitsOf(float value) {
  return __builtin_bit_cast(Bits, value);
}
inline bool IsFinite(float value) {
  return (BitsOf(value) & 0x7f800000U) != 0x7f800000U;
}

/// Makes the first bad element of what there is and of this one. Many threads call it at once.
inline void Blame(MUSTER_GPU_GLOBAL Word* bad, Word element) {
#ifdef __NVPTX__
  __atomic_fetch_min(bad, element, __ATOMIC_RELAXED);
#else
  if (element < *bad) *bad = element;
#endif
}

/// `limit`: the bits of the first float32 that is too large.
inline void AddFixed(Word i, Floats from, MUSTER_GPU_GLOBAL Fixed* sum, double scale, Bits limit,
                     bool first, MUSTER_GPU_GLOBAL Word* bad) {
  const float value = from[i];
  if ((BitsOf(value) & 0x7fffffffU) >= limit) return Blame(bad, i);
  const double rounded = static_cast<double>(value) * scale + kRounder;
  const Fixed fixed = __builtin_bit_cast(Fixed, rounded) - __builtin_bit_cast(Fixed, kRounder);
  sum[i] = first ? fixed : static_cast<Fixed>(static_cast<Word>(sum[i]) + static_cast<Word>(fixed));
}

inline void AddFloat(Word i, Floats from, FloatsOut sum, bool first, MUSTER_GPU_GLOBAL Word* bad) {
  const float value = first ? from[i] : sum[i] + from[i];
  sum[i] = value;
  if (!IsFinite(value)) Blame(bad, i);
}

/// Rounds to nearest, ties to even.
inline void ToBfloat16(Word i, Floats from, MUSTER_GPU_GLOBAL Half* to,
                       MUSTER_GPU_GLOBAL Word* bad) {
  const Bits bits = BitsOf(from[i]);
  const Bits half = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  to[i] = static_cast<Half>(half);
  if ((half & 0x7f80U) == 0x7f80U || !IsFinite(from[i])) Blame(bad, i);
}

inline void FromFixed(Word i, const MUSTER_GPU_GLOBAL Fixed* from, FloatsOut to, double scale) {
  to[i] = static_cast<float>(static_cast<double>(from[i]) * scale);
}

inline void FromBfloat16(Word i, const MUSTER_GPU_GLOBAL Half* from, FloatsOut to,
                         MUSTER_GPU_GLOBAL Word* bad) {
  to[i] = __builtin_bit_cast(float, static_cast<Bits>(from[i]) << 16);
  if (!IsFinite(to[i])) Blame(bad, i);
}

inline void FromFloat(Word i, Floats from, FloatsOut to, MUSTER_GPU_GLOBAL Word* bad) {
  to[i] = from[i];
  if (!IsFinite(to[i])) Blame(bad, i);
}

/// What element i adds to the digest of a sum. The digest is a sum modulo 2^64, so the order does
/// not matter.
inline Word DigestOf(Word i, Word bits) {
  Word mixed = bits ^ ((i + 1) * 0x9E3779B97F4A7C15UL);
  mixed = (mixed ^ (mixed >> 32)) * 0xC2B2AE3D27D4EB4FUL;
  return mixed ^ (mixed >> 29);
}

}  // namespace muster::collectives::gpu
