#include "ps/engine/slab_memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/mapped_memory.h"
#include "base/mutex.h"

#if defined(__SANITIZE_ADDRESS__)
#define MUSTER_PLAIN_SLABS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MUSTER_PLAIN_SLABS 1
#endif
#endif
#ifndef MUSTER_PLAIN_SLABS
#define MUSTER_PLAIN_SLABS 0
#endif

namespace muster::ps::slab_memory {
namespace {

constexpr size_t kLineBytes = 64;
/// The address sanitizer notices an access beyond a block only if its own allocator made the block.
constexpr bool kPlain = MUSTER_PLAIN_SLABS != 0;

constexpr size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Places blocks side by side in chunks. A block gets the smallest gap that is large enough.
class Chunks {
 public:
  uintptr_t Take(size_t bytes) {
    auto gap = by_size_.lower_bound({bytes, 0});
    if (gap == by_size_.end()) {
      const uintptr_t chunk = reinterpret_cast<uintptr_t>(MapMemory(kChunkBytes));
      chunks_.insert(chunk);
      AddGap(chunk, kChunkBytes);
      gap = by_size_.lower_bound({bytes, 0});
    }
    const auto [size, begin] = *gap;
    RemoveGap(begin, size);
    if (size > bytes) AddGap(begin + bytes, size - bytes);
    return begin;
  }

  void Give(uintptr_t begin, size_t bytes) {
    uintptr_t end = begin + bytes;
    // Merges a gap with its neighbours. Gaps of different chunks are not merged, because each chunk
    // may be freed alone.
    if (const auto after = gaps_.find(end); after != gaps_.end() && !chunks_.contains(end)) {
      end += after->second;
      RemoveGap(after->first, after->second);
    }
    auto before = gaps_.lower_bound(begin);
    if (before != gaps_.begin() && !chunks_.contains(begin)) {
      --before;
      if (const auto [at, size] = *before; at + size == begin) {
        begin = at;
        RemoveGap(at, size);
      }
    }
    if (end - begin < kChunkBytes) return AddGap(begin, end - begin);
    MUSTER_CHECK(chunks_.erase(begin) == 1);
    UnmapMemory(reinterpret_cast<void*>(begin), kChunkBytes);
  }

  size_t bytes() const { return chunks_.size() * kChunkBytes; }

 private:
  void AddGap(uintptr_t begin, size_t bytes) {
    gaps_.emplace(begin, bytes);
    by_size_.emplace(bytes, begin);
  }
  void RemoveGap(uintptr_t begin, size_t bytes) {
    gaps_.erase(begin);
    by_size_.erase({bytes, begin});
  }

  std::set<uintptr_t> chunks_;
  std::map<uintptr_t, size_t> gaps_;
  std::set<std::pair<size_t, uintptr_t>> by_size_;
};

struct Shared {
  Mutex mutex;
  Chunks chunks MUSTER_GUARDED_BY(mutex);
  size_t large_bytes MUSTER_GUARDED_BY(mutex) = 0;
};
/// It is never destroyed, because blocks may be given back while the process ends.
Shared& SharedMemory() {
  static Shared* const shared = new Shared;
  return *shared;
}

}  // namespace

void* Take(size_t bytes) {
  bytes = RoundUp(bytes, kLineBytes);
  if (kPlain) {
    void* const block = std::aligned_alloc(kLineBytes, bytes);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  Shared& shared = SharedMemory();
  if (bytes <= kSharedBytesMax) {
    const MutexLock lock(&shared.mutex);
    return reinterpret_cast<void*>(shared.chunks.Take(bytes));
  }
  const size_t mapped = RoundUp(bytes, kHugePageBytes);
  void* const block = MapMemory(mapped);
  const MutexLock lock(&shared.mutex);
  shared.large_bytes += mapped;
  return block;
}

void* TakeZeroed(size_t bytes) {
  void* const block = Take(bytes);
  if (kPlain || bytes <= kSharedBytesMax) std::memset(block, 0, bytes);
  return block;
}

void Give(void* block, size_t bytes) {
  if (block == nullptr) return;
  if (kPlain) return std::free(block);
  bytes = RoundUp(bytes, kLineBytes);
  const auto begin = reinterpret_cast<uintptr_t>(block);
  Shared& shared = SharedMemory();
  if (bytes <= kSharedBytesMax) {
    const MutexLock lock(&shared.mutex);
    return shared.chunks.Give(begin, bytes);
  }
  const size_t mapped = RoundUp(bytes, kHugePageBytes);
  UnmapMemory(reinterpret_cast<void*>(begin), mapped);
  const MutexLock lock(&shared.mutex);
  shared.large_bytes -= mapped;
}

size_t MappedBytes() {
  Shared& shared = SharedMemory();
  const MutexLock lock(&shared.mutex);
  return shared.chunks.bytes() + shared.large_bytes;
}

}  // namespace muster::ps::slab_memory
