#pragma once

#include <cstddef>

// The address sanitizer sees what is used after it was given back only when it is really freed.
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

/// Whether memory that comes back is kept for the next minibatch.
inline constexpr bool kKeepsMemory = MUSTER_KEEPS_MEMORY != 0;

/// Memory for the small things that come and go with every minibatch: its lists, its entries in the
/// books, its frames. One thread takes it and another gives it back, so what comes back is kept in
/// a list for each size that all threads share. Thread-safe.
namespace small_blocks {

/// The largest block. What is larger is row memory.
inline constexpr size_t kBytesMax = 64u << 10;
/// Of blocks of one size that nobody uses, at most so many bytes are kept.
inline constexpr size_t kKeptBytesMax = 2u << 20;

/// `bytes`: at most kBytesMax. Begins with a cache line; the contents are undefined. Never null:
/// std::bad_alloc.
void* Take(size_t bytes);
/// Of Take for the same size.
void Give(void* block, size_t bytes) noexcept;

}  // namespace small_blocks
}  // namespace muster::sdk
