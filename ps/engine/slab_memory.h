#pragma once

#include <cstddef>
#include <memory>

namespace muster::ps {

/// Memory for rows and indexes, in huge pages if the system has them (Linux: madvise). With them,
/// the access to a random row needs no walk through page tables. Without them, the memory is only
/// slower. Blocks up to kSharedBytesMax lie side by side in chunks, so that many small tables share
/// a huge page. Larger blocks have mappings of their own. A block begins with a cache line.
/// Thread-safe, because any thread may drop a partition. Blocks are taken and given back rarely.
///
/// Besides the blocks, it holds at most: less than a huge page for each block above
/// kSharedBytesMax, the gaps between blocks that are still in use, and one chunk. When all blocks
/// of a chunk are given back, the chunk goes back to the system.
namespace slab_memory {

inline constexpr size_t kSharedBytesMax = 2u << 20;
inline constexpr size_t kChunkBytes = 16u << 20;

/// Take returns undefined contents, TakeZeroed returns zeros. The zeros cost no time for a block
/// above kSharedBytesMax. Neither returns null: they throw std::bad_alloc.
void* Take(size_t bytes);
void* TakeZeroed(size_t bytes);
/// Gives a block back. `bytes` must be the number with which it was taken.
void Give(void* block, size_t bytes);

/// The memory in chunks and large mappings at present, used or not.
size_t MappedBytes();

}  // namespace slab_memory

/// A deleter for std::unique_ptr.
struct GiveSlab {
  size_t bytes = 0;
  void operator()(void* block) const { slab_memory::Give(block, bytes); }
};

}  // namespace muster::ps
