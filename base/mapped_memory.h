#pragma once

#include <cstddef>

namespace muster {

inline constexpr size_t kHugePageBytes = 2u << 20;

/// Zeroed memory, a mapping of its own, so that all of it goes back to the system when it is freed.
/// It begins with a page. A block of kHugePageBytes or more begins with a huge page, and is in huge
/// pages where the system has them. `bytes` is a multiple of 4,096. Never null: std::bad_alloc.
std::byte* MapMemory(size_t bytes);
/// Frees memory of MapMemory; `bytes` must be the same.
void UnmapMemory(void* begin, size_t bytes);

}  // namespace muster
