#pragma once

#include <algorithm>
#include <cstddef>

namespace muster::ps {

inline constexpr size_t kFloatsPerLine = 16;
/// Starts to load the line of an address; kWrite: to change it.
///
/// GCC takes a function that does nothing but prefetch for one without any effect, and drops calls
/// of it that are not inlined early. The empty assembly is an effect, and costs nothing.
template <bool kWrite = false>
[[gnu::always_inline]] inline void Prefetch(const void* address) {
  __builtin_prefetch(address, kWrite);
  asm volatile("" : : "r"(address));
}

/// Beyond this the hardware's own prefetcher has taken over, and ours would push out the batch.
inline constexpr size_t kPrefetchFloatsMax = 512;

/// The same for the beginning of a row.
template <bool kWrite>
void PrefetchFloats(const float* floats, size_t count) {
  count = std::min(count, kPrefetchFloatsMax);
  for (size_t i = 0; i < count; i += kFloatsPerLine) Prefetch<kWrite>(floats + i);
  // A row need not begin with a line, so its last float may lie in one more.
  Prefetch<kWrite>(floats + count - 1);
}

}  // namespace muster::ps
