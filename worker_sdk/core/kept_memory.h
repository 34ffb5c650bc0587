#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

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

/// The memory of minibatches: their rows, lists, records in the sender and frames. Every minibatch
/// takes megabytes and gives them back. Fresh memory from the system costs a page fault every
/// 4 KiB, which takes longer than to fill it. So returned blocks are kept for the next minibatch.
/// One thread takes a block and another gives it back, so all threads share the unused blocks.
/// Thread-safe.
namespace kept_memory {

/// The largest small block. Larger blocks are large ones.
inline constexpr size_t kSmallBytesMax = 64u << 10;
/// The most bytes of unused small blocks that are kept for each size.
inline constexpr size_t kSmallKeptBytesMax = 2u << 20;
/// How many bytes of unused large blocks are kept: this many, or as many as were recently in use.
/// (Pulls and the trainer use blocks of different sizes, which cannot replace each other.) Above
/// it, the oldest blocks go back to the system.
inline constexpr size_t kLargeKeptBytesMax = 64u << 20;
/// "Recently" means within the last one to two times so many large blocks taken.
inline constexpr size_t kRecentBlocks = 4096;

/// Begins with a cache line; the contents are undefined. Never null: std::bad_alloc.
void* Take(size_t bytes);
/// A block from Take with the same size, or null.
void Give(void* block, size_t bytes) noexcept;

/// Bytes of the large blocks that are unused now.
size_t LargeKeptBytes();

}  // namespace kept_memory

/// For containers and shared pointers that live for one minibatch. Thread-safe.
template <typename T>
class PoolAllocator {
 public:
  using value_type = T;
  PoolAllocator() = default;
  template <typename Other>
  PoolAllocator(const PoolAllocator<Other>& /*other*/) {}  // NOLINT: containers rebind

  T* allocate(size_t count) {
    static_assert(alignof(T) <= 64);
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(kept_memory::Take(count * sizeof(T)));
  }
  void deallocate(T* block, size_t count) noexcept { kept_memory::Give(block, count * sizeof(T)); }
  friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }
};

template <typename T>
using PooledVector = std::vector<T, PoolAllocator<T>>;

/// As std::make_shared.
template <typename T, typename... Args>
std::shared_ptr<T> MakePooled(Args&&... args) {
  return std::allocate_shared<T>(PoolAllocator<T>(), std::forward<Args>(args)...);
}

/// Elements without a value stay undefined, because they are about to be written.
template <typename T>
class RowAllocator : public PoolAllocator<T> {
 public:
  RowAllocator() = default;
  template <typename Other>
  RowAllocator(const RowAllocator<Other>& /*other*/) {}  // NOLINT: containers rebind

  template <typename Element>
  void construct(Element* at) noexcept {
    ::new (static_cast<void*>(at)) Element;
  }
  template <typename Element, typename... Args>
  void construct(Element* at, Args&&... args) {
    ::new (static_cast<void*>(at)) Element(std::forward<Args>(args)...);
  }
};

template <typename T>
using RowVector = std::vector<T, RowAllocator<T>>;

/// Rows with several owners, undefined at first.
inline std::shared_ptr<float[]> MakeRowBlock(size_t floats) {
  return std::allocate_shared_for_overwrite<float[]>(PoolAllocator<float>(), floats);
}

}  // namespace muster::sdk
