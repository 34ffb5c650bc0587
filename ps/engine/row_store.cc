#include "ps/engine/row_store.h"

#include <new>

#include "base/check.h"

namespace muster::ps {
namespace {
constexpr size_t kCacheLineBytes = 64;
}  // namespace

uint32_t RowStore::Append() {
  MUSTER_CHECK_MSG(size_ < UINT32_MAX - 1, "a table has 2^32 rows in one partition");
  if (size_ == room_) {
    const uint64_t rows = uint64_t{1} << (kFirstSlabBits + static_cast<int>(slabs_.size()));
    // Whole cache lines, as aligned_alloc wants them.
    static_assert((sizeof(float) << kFirstSlabBits) % kCacheLineBytes == 0);
    const size_t bytes = rows * floats_per_row_ * sizeof(float);
    float* slab = static_cast<float*>(std::aligned_alloc(kCacheLineBytes, bytes));
    if (slab == nullptr) throw std::bad_alloc();
    slabs_.emplace_back(slab);
    room_ += rows;
  }
  return size_++;
}

}  // namespace muster::ps
