#include "ps/engine/row_store.h"

#include "base/check.h"

namespace muster::ps {

uint32_t RowStore::Append() {
  MUSTER_CHECK_MSG(size_ < UINT32_MAX - 1, "a table has 2^32 rows in one partition");
  if (size_ == room_) {
    const uint64_t rows = uint64_t{1} << (kFirstSlabBits + slabs_.size() / kSlabsOfASize);
    const size_t bytes = rows * floats_per_row_ * sizeof(float);
    slabs_.emplace_back(static_cast<float*>(slab_memory::Take(bytes)), GiveSlab{bytes});
    room_ += rows;
  }
  return size_++;
}

}  // namespace muster::ps
