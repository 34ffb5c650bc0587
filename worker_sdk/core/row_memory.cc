#include "worker_sdk/core/row_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/mutex.h"

#if defined(__SANITIZE_ADDRESS__)
#define MUSTER_PLAIN_ROWS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MUSTER_PLAIN_ROWS 1
#endif
#endif
#ifndef MUSTER_PLAIN_ROWS
#define MUSTER_PLAIN_ROWS 0
#endif

namespace muster::sdk {
namespace row_memory {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kHugePageBytes = 2u << 20;
/// The address sanitizer sees what is used after it was given back only when it is really freed.
constexpr bool kKeeps = MUSTER_PLAIN_ROWS == 0;

/// Before each block, a line for itself.
struct BlockHead {
  size_t capacity;  // of the whole block, this line too
};
static_assert(sizeof(BlockHead) <= kLineBytes);

/// Steps of an eighth at most, so that minibatches of nearly the same size fit into each other's
/// blocks.
size_t CapacityFor(size_t bytes) {
  const size_t step = std::max<size_t>(4096, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

std::align_val_t AlignmentOf(size_t capacity) {
  return std::align_val_t{capacity >= kHugePageBytes ? kHugePageBytes : kLineBytes};
}

BlockHead* MakeBlock(size_t capacity) {
  void* const block = ::operator new(capacity, AlignmentOf(capacity));
  if (capacity >= kHugePageBytes) {
    // Refused by a system without huge pages: then they are small.
    static_cast<void>(::madvise(block, capacity / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE));
  }
  return ::new (block) BlockHead{capacity};
}

void FreeBlock(BlockHead* head) {
  ::operator delete(static_cast<void*>(head), AlignmentOf(head->capacity));
}

/// Blocks that nobody uses, smallest first.
class Pool {
 public:
  BlockHead* Take(size_t capacity) MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    const auto fits = std::ranges::lower_bound(kept_, capacity, {}, &BlockHead::capacity);
    // A much larger one is left for who needs it.
    if (fits == kept_.end() || (*fits)->capacity / 2 > capacity) return nullptr;
    BlockHead* const head = *fits;
    kept_.erase(fits);
    MUSTER_CHECK(bytes_ >= head->capacity);
    bytes_ -= head->capacity;
    return head;
  }

  /// False: it does not fit beside the others.
  bool Keep(BlockHead* head) MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (!kKeeps || bytes_ + head->capacity > kKeptBytesMax) return false;
    bytes_ += head->capacity;
    kept_.insert(std::ranges::lower_bound(kept_, head->capacity, {}, &BlockHead::capacity), head);
    return true;
  }

  size_t bytes() MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return bytes_;
  }

 private:
  Mutex mutex_;
  std::vector<BlockHead*> kept_ MUSTER_GUARDED_BY(mutex_);
  size_t bytes_ MUSTER_GUARDED_BY(mutex_) = 0;
};

/// Lives as long as the process: whoever ends last may give something back.
Pool& ThePool() {
  static Pool& pool = *new Pool;
  return pool;
}

}  // namespace

void* Take(size_t bytes) {
  const size_t wanted = bytes + kLineBytes;
  if (wanted < bytes) throw std::bad_alloc();
  const bool pooled = bytes >= kPooledBytesMin;
  const size_t capacity = pooled ? CapacityFor(wanted) : wanted;
  BlockHead* head = pooled ? ThePool().Take(capacity) : nullptr;
  if (head == nullptr) head = MakeBlock(capacity);
  return reinterpret_cast<std::byte*>(head) + kLineBytes;
}

void Give(void* block) noexcept {
  if (block == nullptr) return;
  auto* const head = reinterpret_cast<BlockHead*>(static_cast<std::byte*>(block) - kLineBytes);
  if (head->capacity < kPooledBytesMin + kLineBytes || !ThePool().Keep(head)) FreeBlock(head);
}

size_t KeptBytes() {
  return ThePool().bytes();
}

}  // namespace row_memory

std::shared_ptr<float[]> MakeRowBlock(size_t floats) {
  return {static_cast<float*>(row_memory::Take(floats * sizeof(float))), row_memory::Give};
}

}  // namespace muster::sdk
