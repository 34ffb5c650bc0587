#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace muster::sdk {

/// Memory for the rows of a minibatch: what pulls bring, what the trainer reads, what pushes send.
/// Megabytes of it are taken and given back with every minibatch, and memory that is fresh from the
/// system costs a page fault every 4 KiB, which takes longer than to fill it. So blocks that come
/// back are kept for the next minibatch. Thread-safe.
namespace row_memory {

/// Smaller blocks are small_blocks.
inline constexpr size_t kPooledBytesMin = 64u << 10;
/// Of blocks that nobody uses so many bytes are kept, or as many as were in use of late. (What a
/// pull brings and what the trainer reads are blocks of different sizes: one cannot serve for the
/// other.) Beyond it, those that came back first go to the system.
inline constexpr size_t kKeptBytesMax = 64u << 20;
/// "Of late" is within the last one to two times so many blocks taken.
inline constexpr size_t kRecentBlocks = 4096;

/// Begins with a cache line; the contents are undefined. Never null: std::bad_alloc.
void* Take(size_t bytes);
/// Of Take, or null.
void Give(void* block) noexcept;

/// Bytes of blocks that nobody uses at this instant.
size_t KeptBytes();

}  // namespace row_memory

/// For std::vector: its memory is row memory, and elements that no value is given for stay
/// undefined, for they are about to be written.
template <typename T>
class RowAllocator {
 public:
  using value_type = T;
  RowAllocator() = default;
  template <typename Other>
  RowAllocator(const RowAllocator<Other>& /*other*/) {}  // NOLINT: containers rebind

  T* allocate(size_t count) { return static_cast<T*>(row_memory::Take(count * sizeof(T))); }
  void deallocate(T* block, size_t /*count*/) noexcept { row_memory::Give(block); }
  template <typename Element>
  void construct(Element* at) noexcept {
    ::new (static_cast<void*>(at)) Element;
  }
  template <typename Element, typename... Args>
  void construct(Element* at, Args&&... args) {
    ::new (static_cast<void*>(at)) Element(std::forward<Args>(args)...);
  }
  friend bool operator==(const RowAllocator&, const RowAllocator&) { return true; }
};

template <typename T>
using RowVector = std::vector<T, RowAllocator<T>>;

/// Rows that several hold, undefined at first.
std::shared_ptr<float[]> MakeRowBlock(size_t floats);

}  // namespace muster::sdk
