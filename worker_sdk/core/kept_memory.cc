#include "worker_sdk/core/kept_memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/mapped_memory.h"
#include "base/mutex.h"

namespace muster::sdk::kept_memory {
namespace {

constexpr size_t kLineBytes = 64;
/// The address sanitizer checks allocated memory, but not mapped memory.
constexpr size_t kMappedBytesMin = kKeepsMemory ? 256u << 10 : SIZE_MAX;

// ---- small blocks ----

/// Sizes are powers of two, so that a few lists serve all.
constexpr size_t SizeNumber(size_t bytes) {
  return static_cast<size_t>(std::bit_width((std::max<size_t>(bytes, 1) - 1) / kLineBytes));
}
constexpr size_t BytesOf(size_t number) {
  return kLineBytes << number;
}

/// The unused blocks of one size, newest first, because the newest is most likely in a cache.
class alignas(kLineBytes) SmallBlocks {
 public:
  void* Take() MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    Unused* const block = first_;
    if (block == nullptr) return nullptr;
    first_ = block->next;
    --count_;
    return block;
  }
  /// False: the list is full.
  bool Keep(void* block, size_t most) MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (count_ >= most) return false;
    first_ = ::new (block) Unused{first_};
    ++count_;
    return true;
  }

 private:
  struct Unused {
    Unused* next;
  };
  Mutex mutex_;
  Unused* first_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  size_t count_ MUSTER_GUARDED_BY(mutex_) = 0;
};

/// They live as long as the process, because any thread may give a block back at the very end.
SmallBlocks& ListOf(size_t number) {
  static auto& lists = *new std::array<SmallBlocks, SizeNumber(kSmallBytesMax) + 1>;
  return lists[number];
}

// ---- large blocks ----

/// The header before each block, one cache line.
struct alignas(kLineBytes) BlockHead {
  size_t capacity;     // of the whole block, this line too
  uint64_t given = 0;  // the number of blocks that were given to the pool before
};
static_assert(sizeof(BlockHead) == kLineBytes);

/// Sizes grow in steps of at most an eighth, so that minibatches of nearly the same size can reuse
/// each other's blocks.
size_t CapacityFor(size_t bytes) {
  const size_t step = std::max<size_t>(4096, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;  // whole pages
}

/// Very large blocks are mapped, so that freed memory goes back to the system, whatever lies beside
/// it.
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
class LargeBlocks {
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
    const size_t limit = kKeepsMemory ? std::max(kLargeKeptBytesMax, peak_.value()) : 0;
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
LargeBlocks& TheLargeBlocks() {
  static auto& blocks = *new LargeBlocks;
  return blocks;
}

}  // namespace

void* Take(size_t bytes) {
  if (bytes <= kSmallBytesMax) {
    if (!kKeepsMemory) return ::operator new(bytes, std::align_val_t{kLineBytes});
    const size_t number = SizeNumber(bytes);
    void* const block = ListOf(number).Take();
    return block != nullptr ? block : ::operator new(BytesOf(number), std::align_val_t{kLineBytes});
  }
  const size_t wanted = bytes + kLineBytes;
  if (wanted < bytes) throw std::bad_alloc();
  const size_t capacity = CapacityFor(wanted);
  BlockHead* head = TheLargeBlocks().Take(capacity);
  if (head == nullptr) {
    FreeBlocks(TheLargeBlocks().Made(capacity));
    head = MakeBlock(capacity);
  }
  return head + 1;
}

void Give(void* block, size_t bytes) noexcept {
  if (block == nullptr) return;
  if (bytes > kSmallBytesMax) {
    return FreeBlocks(TheLargeBlocks().Keep(static_cast<BlockHead*>(block) - 1));
  }
  const size_t number = SizeNumber(bytes);
  if (kKeepsMemory && ListOf(number).Keep(block, kSmallKeptBytesMax / BytesOf(number))) return;
  ::operator delete(block, std::align_val_t{kLineBytes});
}

size_t LargeKeptBytes() {
  return TheLargeBlocks().bytes();
}

}  // namespace muster::sdk::kept_memory
