#include "ps/engine/table_image.h"

#include <new>
#include <utility>

#include "base/check.h"

namespace muster::ps {

RowSet::RowSet(uint32_t bound)
    : words_(static_cast<uint64_t*>(std::calloc(bound / 64 + 1, sizeof(uint64_t)))) {
  if (words_ == nullptr) throw std::bad_alloc();
}

TableImage::TableImage(TableId table, uint32_t floats_per_row, uint32_t bound, uint64_t count)
    : bound_(bound), count_(count), added_(bound), image_{table, floats_per_row, {}, {}} {
  // Reserves everything at once, so that no vector has to grow. Memory that is not used yet costs
  // nothing.
  image_.keys.reserve(count);
  image_.rows.reserve(count * floats_per_row);
}

void TableImage::Add(uint32_t row, uint64_t key, const float* floats) {
  MUSTER_CHECK(row < bound_);
  if (!added_.Add(row)) return;
  image_.keys.push_back(key);
  image_.rows.insert(image_.rows.end(), floats, floats + image_.floats_per_row);
}

RowImage TableImage::Take() {
  MUSTER_CHECK(image_.keys.size() == count_);
  return std::move(image_);
}

}  // namespace muster::ps
