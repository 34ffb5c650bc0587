#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace muster::ps {

/// The rows of one table in one partition, by number: each is one block of floats (values, then
/// optimizer slots). Blocks lie in slabs that double in size, so that rows never move, nothing is
/// copied when the table grows, and memory that is not yet used is not yet touched. Not
/// thread-safe.
class RowStore {
 public:
  explicit RowStore(uint32_t floats_per_row) : floats_per_row_(floats_per_row) {}

  /// Adds a row and returns its number. Its contents are undefined.
  uint32_t Append();

  float* Row(uint32_t row) { return const_cast<float*>(std::as_const(*this).Row(row)); }
  const float* Row(uint32_t row) const {
    const uint64_t position = (uint64_t{row} >> kFirstSlabBits) + 1;
    const int slab = std::bit_width(position) - 1;
    const uint64_t begin = ((uint64_t{1} << slab) - 1) << kFirstSlabBits;
    return slabs_[static_cast<size_t>(slab)].get() + (row - begin) * floats_per_row_;
  }

  uint32_t size() const { return size_; }
  uint32_t floats_per_row() const { return floats_per_row_; }

 private:
  static constexpr int kFirstSlabBits = 4;  // the first slab has 16 rows
  struct Free {
    void operator()(float* slab) const { std::free(slab); }
  };

  uint32_t floats_per_row_;
  uint32_t size_ = 0;
  uint64_t room_ = 0;
  std::vector<std::unique_ptr<float, Free>> slabs_;
};

}  // namespace muster::ps
