#pragma once

#include <cstddef>

namespace muster {

inline constexpr size_t kHugePageBytes = 2u << 20;

/// Zeroed memory in a mapping of its own, so that all of it goes back to the system when it is
/// freed. It begins at a page. A block of kHugePageBytes or more begins at a huge page, and uses
/// huge pages if the system has them. `bytes` must be a multiple of 4,096. It is never null; it
/// throws std::bad_alloc.
std::byte* MapMemory(size_t bytes);
/// Frees memory of MapMemory; `bytes` must be the same.
void UnmapMemory(void* begin, size_t bytes);

}  // namespace muster
