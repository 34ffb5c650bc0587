#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace muster::sdk {

/// Memory for the rows of a minibatch: those that pulls bring, that the trainer reads, and that
/// pushes send. Every minibatch takes megabytes and gives them back. Fresh memory from the system
/// costs a page fault every 4 KiB, which takes longer than to fill it. So returned blocks are kept
/// for the next minibatch. Thread-safe.
namespace row_memory {

/// Smaller blocks are small_blocks.
inline constexpr size_t kPooledBytesMin = 64u << 10;
/// How many bytes of unused blocks are kept: this many, or as many as were recently in use. (Pulls
/// and the trainer use blocks of different sizes, which cannot replace each other.) Above it, the
/// oldest blocks go back to the system.
inline constexpr size_t kKeptBytesMax = 64u << 20;
/// "Recently" means within the last one to two times so many blocks taken.
inline constexpr size_t kRecentBlocks = 4096;

/// Begins with a cache line; the contents are undefined. Never null: std::bad_alloc.
void* Take(size_t bytes);
/// A block from Take, or null.
void Give(void* block) noexcept;

/// Bytes of the blocks that are unused now.
size_t KeptBytes();

}  // namespace row_memory

/// For std::vector: its memory is row memory. Elements without a value stay undefined, because they
/// are about to be written.
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

/// Rows with several owners, undefined at first.
std::shared_ptr<float[]> MakeRowBlock(size_t floats);

}  // namespace muster::sdk
