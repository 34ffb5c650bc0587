#pragma once

#include <cstddef>
#include <memory>

namespace muster::ps {

/// Memory for rows and indexes, in huge pages if the system has them (Linux: madvise; without them,
/// it is only slower): a random row then costs no walk through page tables. Blocks up to
/// kSharedBytesMax lie side by side in chunks, so that many small tables share a huge page; larger
/// ones have mappings of their own. A block begins with a cache line. Thread-safe, because any
/// thread may drop a partition; blocks are taken and given back rarely.
///
/// Beyond the blocks themselves it holds at most: less than a huge page for each block above
/// kSharedBytesMax, the gaps between blocks that are still in use, and one chunk. A chunk whose
/// blocks are all back goes back to the system.
namespace slab_memory {

inline constexpr size_t kSharedBytesMax = 2u << 20;
inline constexpr size_t kChunkBytes = 16u << 20;

/// Never null: std::bad_alloc. The contents are undefined, or zero; to be zero costs no time for a
/// block above kSharedBytesMax.
void* Take(size_t bytes);
void* TakeZeroed(size_t bytes);
/// Requires that the block was taken with as many bytes.
void Give(void* block, size_t bytes);

/// Memory in chunks and large mappings now, used or not.
size_t MappedBytes();

}  // namespace slab_memory

/// For std::unique_ptr.
struct GiveSlab {
  size_t bytes = 0;
  void operator()(void* block) const { slab_memory::Give(block, bytes); }
};

}  // namespace muster::ps
