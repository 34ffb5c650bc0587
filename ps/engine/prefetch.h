#pragma once

#include <algorithm>
#include <cstddef>

namespace muster::ps {

inline constexpr size_t kFloatsPerLine = 16;
/// Which cache a line is loaded into.
enum class CacheLevel { kFirst = 3, kSecond = 2 };
/// Starts to load the line of an address.
///
/// GCC takes a function that does nothing but prefetch for one without any effect, and drops calls
/// of it that are not inlined early. The empty assembly is an effect, and costs nothing.
template <CacheLevel kInto = CacheLevel::kFirst>
[[gnu::always_inline]] inline void Prefetch(const void* address) {
  __builtin_prefetch(address, 0, static_cast<int>(kInto));
  asm volatile("" : : "r"(address));
}

/// Beyond this the hardware's own prefetcher has taken over, and ours would push out the batch.
inline constexpr size_t kPrefetchFloatsMax = 512;

/// The same for the beginning of a row. Into the second level where a whole batch of rows is asked
/// for before the first one is used: a processor has more loads under way to there than to the
/// first, whose few fill buffers rows would keep busy. With 10,000 keys a call and 256 partitions
/// an AMD EPYC does 1.3 times as many steps of Adagrad so.
template <CacheLevel kInto>
inline void PrefetchFloats(const float* floats, size_t count) {
  count = std::min(count, kPrefetchFloatsMax);
  for (size_t i = 0; i < count; i += kFloatsPerLine) Prefetch<kInto>(floats + i);
  // A row need not begin with a line, so its last float may lie in one more.
  Prefetch<kInto>(floats + count - 1);
}

}  // namespace muster::ps
