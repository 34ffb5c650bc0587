#pragma once

#include <cstddef>

namespace muster {

inline constexpr size_t kHugePageBytes = 2u << 20;

/// Memory of its own from the system, zeroed, at the beginning of a page; from a huge page's bytes
/// on, of a huge one, and in huge pages where the system has them. Large blocks that are freed go
/// back to the system so, whatever lies beside them. `bytes` is a multiple of 4,096. Never null:
/// std::bad_alloc.
std::byte* MapMemory(size_t bytes);
/// All of what MapMemory gave for so many bytes, or any whole pages of it.
void UnmapMemory(void* begin, size_t bytes);

}  // namespace muster
