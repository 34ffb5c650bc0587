#include "worker_sdk/core/row_memory.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/mapped_memory.h"
#include "base/mutex.h"
#include "worker_sdk/core/small_blocks.h"

namespace muster::sdk {
namespace row_memory {
namespace {

constexpr size_t kLineBytes = 64;
/// The address sanitizer checks allocated memory, but not mapped memory.
constexpr size_t kMappedBytesMin = kKeepsMemory ? 256u << 10 : SIZE_MAX;

/// The header before each block, one cache line.
struct BlockHead {
  size_t capacity;     // of the whole block, this line too
  uint64_t given = 0;  // the number of blocks that were given to the pool before
  /// Room for the control block of a shared pointer to the block.
  alignas(std::max_align_t) std::byte shared[kLineBytes - 2 * sizeof(uint64_t)];
};
static_assert(sizeof(BlockHead) == kLineBytes);

BlockHead* HeadOf(void* block) {
  return reinterpret_cast<BlockHead*>(static_cast<std::byte*>(block) - kLineBytes);
}

/// Sizes grow in steps of at most an eighth, so that minibatches of nearly the same size can reuse
/// each other's blocks.
size_t CapacityFor(size_t bytes) {
  const size_t step = std::max<size_t>(4096, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;  // whole pages
}

/// Large blocks are mapped, so that freed memory goes back to the system, whatever lies beside it.
bool IsMapped(size_t capacity) {
  return capacity >= kMappedBytesMin;
}

BlockHead* MakeBlock(size_t capacity) {
  void* const block = IsMapped(capacity) ? MapMemory(capacity)
                                         : ::operator new(capacity, std::align_val_t{kLineBytes});
  return ::new (block) BlockHead{.capacity = capacity};
}

void FreeBlock(BlockHead* head) {
  const size_t capacity = head->capacity;
  if (IsMapped(capacity)) {
    UnmapMemory(head, capacity);
  } else {
    ::operator delete(static_cast<void*>(head), std::align_val_t{kLineBytes});
  }
}

void FreeBlocks(const std::vector<BlockHead*>& heads) {
  for (BlockHead* const head : heads) FreeBlock(head);
}

/// The largest of the newest readings (of between kRecentBlocks and twice as many).
class RecentPeak {
 public:
  void Add(size_t reading) {
    if (++readings_ % kRecentBlocks == 0) before_ = std::exchange(now_, 0);
    now_ = std::max(now_, reading);
  }
  size_t value() const { return std::max(before_, now_); }

 private:
  uint64_t readings_ = 0;
  size_t before_ = 0, now_ = 0;
};

/// Unused blocks, smallest first.
class Pool {
 public:
  BlockHead* Take(size_t capacity) MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    const auto fits = std::ranges::lower_bound(kept_, capacity, {}, &BlockHead::capacity);
    // A much larger block stays for a larger request.
    if (fits == kept_.end() || (*fits)->capacity / 2 > capacity) return nullptr;
    BlockHead* const head = *fits;
    kept_.erase(fits);
    MUSTER_CHECK(bytes_ >= head->capacity);
    bytes_ -= head->capacity;
    Count(head->capacity);
    return head;
  }
  /// A block of this size is in use that was not from the pool. Returns the blocks that no longer
  /// fit beside it.
  std::vector<BlockHead*> Made(size_t capacity) MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    Count(capacity);
    return Trim();
  }
  /// Takes the block, and returns the blocks that no longer fit beside it.
  std::vector<BlockHead*> Keep(BlockHead* head) MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    MUSTER_CHECK(used_ >= head->capacity);
    used_ -= head->capacity;
    bytes_ += head->capacity;
    head->given = ++given_;
    kept_.insert(std::ranges::lower_bound(kept_, head->capacity, {}, &BlockHead::capacity), head);
    return Trim();
  }

  size_t bytes() MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return bytes_;
  }

 private:
  void Count(size_t bytes) MUSTER_REQUIRES(mutex_) {
    used_ += bytes;
    peak_.Add(used_);
  }

  /// Removes the oldest blocks that are too many.
  std::vector<BlockHead*> Trim() MUSTER_REQUIRES(mutex_) {
    const size_t limit = kKeepsMemory ? std::max(kKeptBytesMax, peak_.value()) : 0;
    std::vector<BlockHead*> over;
    while (bytes_ > limit) {
      const auto oldest = std::ranges::min_element(kept_, {}, &BlockHead::given);
      bytes_ -= (*oldest)->capacity;
      over.push_back(*oldest);
      kept_.erase(oldest);
    }
    return over;
  }

  Mutex mutex_;
  std::vector<BlockHead*> kept_ MUSTER_GUARDED_BY(mutex_);
  size_t bytes_ MUSTER_GUARDED_BY(mutex_) = 0;  // of those
  size_t used_ MUSTER_GUARDED_BY(mutex_) = 0;   // bytes in use
  uint64_t given_ MUSTER_GUARDED_BY(mutex_) = 0;
  RecentPeak peak_ MUSTER_GUARDED_BY(mutex_);  // of used_
};

/// Lives as long as the process, because any thread may give a block back at the very end.
Pool& ThePool() {
  static Pool& pool = *new Pool;
  return pool;
}

}  // namespace

void* Take(size_t bytes) {
  const size_t wanted = bytes + kLineBytes;
  if (wanted < bytes) throw std::bad_alloc();
  BlockHead* head = nullptr;
  if (wanted <= small_blocks::kBytesMax) {
    head = ::new (small_blocks::Take(wanted)) BlockHead{.capacity = wanted};
  } else {
    const size_t capacity = CapacityFor(wanted);
    head = ThePool().Take(capacity);
    if (head == nullptr) {
      FreeBlocks(ThePool().Made(capacity));
      head = MakeBlock(capacity);
    }
  }
  return reinterpret_cast<std::byte*>(head) + kLineBytes;
}

void Give(void* block) noexcept {
  if (block == nullptr) return;
  BlockHead* const head = HeadOf(block);
  if (head->capacity <= small_blocks::kBytesMax) return small_blocks::Give(head, head->capacity);
  FreeBlocks(ThePool().Keep(head));
}

size_t KeptBytes() {
  return ThePool().bytes();
}

}  // namespace row_memory

namespace {

/// Places the control block of a shared pointer in the header of its block. So both are taken
/// together and given back together.
template <typename T>
struct HeadAllocator {
  using value_type = T;
  explicit HeadAllocator(void* shared_block) : block(shared_block) {}
  template <typename Other>
  HeadAllocator(const HeadAllocator<Other>& other)  // NOLINT: shared pointers rebind
      : block(other.block) {}

  T* allocate(size_t count) {
    static_assert(sizeof(T) <= sizeof(row_memory::BlockHead::shared));
    MUSTER_CHECK(count == 1);
    return reinterpret_cast<T*>(row_memory::HeadOf(block)->shared);
  }
  void deallocate(T* /*books*/, size_t /*count*/) noexcept { row_memory::Give(block); }
  template <typename Other>
  friend bool operator==(const HeadAllocator& a, const HeadAllocator<Other>& b) {
    return a.block == b.block;
  }

  void* block;
};

}  // namespace

std::shared_ptr<float[]> MakeRowBlock(size_t floats) {
  auto* const rows = static_cast<float*>(row_memory::Take(floats * sizeof(float)));
  return {rows, [](float*) {}, HeadAllocator<float>(rows)};
}

}  // namespace muster::sdk
