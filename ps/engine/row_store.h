#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "ps/engine/prefetch.h"
#include "ps/engine/slab_memory.h"

namespace muster::ps {

/// The rows of one table in one partition, by number. Each row is one block of floats: values, then
/// optimizer slots. The rows lie in slabs of slab_memory.h. The size of the slabs doubles after
/// every eight slabs. So rows never move, nothing is copied when the table grows, and at most an
/// eighth of the slabs' memory (in a table with more than 128 rows) has no rows yet. Not
/// thread-safe.
class RowStore {
 public:
  explicit RowStore(uint32_t floats_per_row) : floats_per_row_(floats_per_row) {}

  /// Adds a row and returns its number. Its contents are undefined.
  uint32_t Append();

  float* Row(uint32_t row) { return const_cast<float*>(std::as_const(*this).Row(row)); }
  const float* Row(uint32_t row) const {
    const uint64_t position = (row >> kFirstSlabBits) + kSlabsOfASize;
    const int doublings = std::bit_width(position) - std::bit_width(kSlabsOfASize);
    const uint64_t step = position >> doublings;  // in [kSlabsOfASize, 2 * kSlabsOfASize)
    const uint64_t slab = kSlabsOfASize * static_cast<uint64_t>(doublings) + step - kSlabsOfASize;
    const uint64_t begin = ((step << doublings) - kSlabsOfASize) << kFirstSlabBits;
    return slabs_[slab].get() + (row - begin) * floats_per_row_;
  }

  /// Prefetches what Row needs besides this object.
  void Prefetch() const {
    if (slabs_.size() > kInlineSlabs) ps::Prefetch(slabs_.data());
  }

  uint32_t size() const { return size_; }
  uint32_t floats_per_row() const { return floats_per_row_; }
  /// The memory of all slabs.
  uint64_t bytes() const { return room_ * floats_per_row_ * sizeof(float); }

 private:
  static constexpr int kFirstSlabBits = 4;  // the first slab has 16 rows
  static constexpr uint64_t kSlabsOfASize = 8;
  /// A model of many tables has few rows of each in a partition. The addresses of their slabs lie
  /// in the object, so a row of theirs is found with one cache line less.
  static constexpr size_t kInlineSlabs = 4;

  uint32_t floats_per_row_;
  uint32_t size_ = 0;
  uint64_t room_ = 0;
  absl::InlinedVector<std::unique_ptr<float, GiveSlab>, kInlineSlabs> slabs_;
};

}  // namespace muster::ps
