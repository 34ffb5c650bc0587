#include "worker_sdk/core/small_blocks.h"

#include <array>
#include <bit>
#include <new>

#include "base/check.h"
#include "base/mutex.h"

namespace muster::sdk::small_blocks {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kSizes = static_cast<size_t>(std::bit_width(kBytesMax / kLineBytes));

/// Sizes are powers of two, so that a few lists serve all.
size_t SizeNumber(size_t bytes) {
  return static_cast<size_t>(std::bit_width((bytes + kLineBytes - 1) / kLineBytes * 2 - 1)) - 1;
}
constexpr size_t BytesOf(size_t number) {
  return kLineBytes << number;
}

/// An unused block.
struct FreeBlock {
  FreeBlock* next = nullptr;
};

/// The unused blocks of one size, newest first, because the newest is most likely in a cache.
class alignas(kLineBytes) FreeBlocks {
 public:
  FreeBlock* Take() MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    FreeBlock* const block = first_;
    if (block == nullptr) return nullptr;
    first_ = block->next;
    --count_;
    return block;
  }
  /// False: the list is full.
  bool Keep(void* block, size_t most) MUSTER_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (count_ >= most) return false;
    first_ = ::new (block) FreeBlock{first_};
    ++count_;
    return true;
  }

 private:
  Mutex mutex_;
  FreeBlock* first_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  size_t count_ MUSTER_GUARDED_BY(mutex_) = 0;
};

/// They live as long as the process, because any thread may give a block back at the very end.
FreeBlocks& ListOf(size_t number) {
  static auto& lists = *new std::array<FreeBlocks, kSizes>;
  return lists[number];
}

}  // namespace

void* Take(size_t bytes) {
  MUSTER_CHECK(bytes <= kBytesMax);
  if (!kKeepsMemory) return ::operator new(bytes, std::align_val_t{kLineBytes});
  const size_t number = bytes == 0 ? 0 : SizeNumber(bytes);
  void* const block = ListOf(number).Take();
  if (block != nullptr) return block;
  return ::operator new(BytesOf(number), std::align_val_t{kLineBytes});
}

void Give(void* block, size_t bytes) noexcept {
  if (block == nullptr) return;
  const size_t number = bytes == 0 ? 0 : SizeNumber(bytes);
  if (kKeepsMemory && ListOf(number).Keep(block, kKeptBytesMax / BytesOf(number))) return;
  ::operator delete(block, std::align_val_t{kLineBytes});
}

}  // namespace muster::sdk::small_blocks
