#pragma once

// This has no includes of its own, because the GPU's compiler has no libraries.
#include "base/words/number_bits.h"

/// The loops over gradients and sums that run on a GPU, an element at a time. They give the bits of
/// worker_sdk/member_core/gradient_kernels.h. `gpu_kernels.py` compiles this file with Clang to the
/// text for CUDA's driver in gpu_kernels.cc. Tests run the loops on the processor. Pure.
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

/// No element is bad.
constexpr Word kNone = ~Word{0};

/// Makes `*bad` this element, if that is smaller. Many threads call it at once.
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
  if (MagnitudeBits(value) >= limit) return Blame(bad, i);
  const Word fixed = ToFixedPoint(value, scale);
  sum[i] = static_cast<Fixed>(first ? fixed : static_cast<Word>(sum[i]) + fixed);
}

inline void AddFloat(Word i, Floats from, FloatsOut sum, bool first, MUSTER_GPU_GLOBAL Word* bad) {
  const float value = first ? from[i] : sum[i] + from[i];
  sum[i] = value;
  if (!IsFinite(value)) Blame(bad, i);
}

inline void ToBfloat16(Word i, Floats from, MUSTER_GPU_GLOBAL Half* to,
                       MUSTER_GPU_GLOBAL Word* bad) {
  const Half half = muster::ToBfloat16(from[i]);
  to[i] = half;
  if (!IsFinite(muster::FromBfloat16(half)) || !IsFinite(from[i])) Blame(bad, i);
}

inline void FromFixed(Word i, const MUSTER_GPU_GLOBAL Fixed* from, FloatsOut to, double scale) {
  to[i] = static_cast<float>(static_cast<double>(from[i]) * scale);
}

inline void FromBfloat16(Word i, const MUSTER_GPU_GLOBAL Half* from, FloatsOut to,
                         MUSTER_GPU_GLOBAL Word* bad) {
  to[i] = muster::FromBfloat16(from[i]);
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
