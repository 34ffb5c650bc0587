#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/words/types.h"

namespace muster::ps {

/// The rows of one table, as a snapshot holds them.
struct RowImage {
  TableId table;
  uint32_t floats_per_row = 0;  // values and slots
  std::vector<uint64_t> keys;
  std::vector<float> rows;  // [keys.size(), floats_per_row] row-major
};

/// A set of row numbers below a bound. The system zeroes its memory, page by page.
class RowSet {
 public:
  explicit RowSet(uint32_t bound);
  /// Returns true if the row was not in the set.
  bool Add(uint32_t row) {
    uint64_t& word = words_.get()[row / 64];
    const uint64_t bit = uint64_t{1} << (row % 64);
    if ((word & bit) != 0) return false;
    word |= bit;
    return true;
  }

 private:
  struct Free {
    void operator()(uint64_t* words) const { std::free(words); }
  };
  std::unique_ptr<uint64_t, Free> words_;
};

/// The rows of a table at one instant, the cut. They are copied while the table changes. Each row
/// is added once, as it was at the cut: when its turn comes, or before its first change.
class TableImage {
 public:
  /// The table has `bound` rows at the cut. The image will hold `count` of them.
  TableImage(TableId table, uint32_t floats_per_row, uint32_t bound, uint64_t count);

  /// Rows from this number on were created after the cut.
  uint32_t bound() const { return bound_; }
  /// Adds a row, unless it is there already. Its floats must be those of the cut.
  void Add(uint32_t row, uint64_t key, const float* floats);
  /// Returns the image. Requires that all of its rows were added.
  RowImage Take();

 private:
  uint32_t bound_;
  uint64_t count_;
  RowSet added_;
  RowImage image_;
};

}  // namespace muster::ps
