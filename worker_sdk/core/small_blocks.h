#pragma once

#include <cstddef>

// The address sanitizer finds a use after free only if the memory is really freed.
#define MUSTER_KEEPS_MEMORY 1
#if defined(__SANITIZE_ADDRESS__)
#undef MUSTER_KEEPS_MEMORY
#define MUSTER_KEEPS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#undef MUSTER_KEEPS_MEMORY
#define MUSTER_KEEPS_MEMORY 0
#endif
#endif

namespace muster::sdk {

/// True if returned memory is kept for the next minibatch.
inline constexpr bool kKeepsMemory = MUSTER_KEEPS_MEMORY != 0;

/// Memory for the small objects of each minibatch: its lists, its records in the sender, its
/// frames. One thread takes a block and another gives it back, so all threads share one list of
/// unused blocks for each size. Thread-safe.
namespace small_blocks {

/// The largest block. Larger ones are row memory.
inline constexpr size_t kBytesMax = 64u << 10;
/// Most bytes of unused blocks that are kept for each size.
inline constexpr size_t kKeptBytesMax = 2u << 20;

/// `bytes`: at most kBytesMax. Begins with a cache line; the contents are undefined. Never null:
/// std::bad_alloc.
void* Take(size_t bytes);
/// A block from Take with the same size.
void Give(void* block, size_t bytes) noexcept;

}  // namespace small_blocks
}  // namespace muster::sdk
