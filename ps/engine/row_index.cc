#include "ps/engine/row_index.h"

#include "base/check.h"

namespace muster::ps {
namespace {
constexpr size_t kCapacityMin = 16;
/// Load at most 3/4: linear probing with a good hash looks at 2.5 entries on average there (Knuth,
/// The Art of Computer Programming 3, section 6.4, equation 61), mostly in one line.
constexpr size_t Room(size_t capacity) {
  return capacity / 4 * 3;
}
}  // namespace

const RowIndex::Entry* RowIndex::Find(uint64_t key) const {
  if (capacity_ == 0) return nullptr;
  for (size_t i = Home(key);; i = (i + 1) & (capacity_ - 1)) {
    const Entry& entry = entries_[i];
    if (entry.row == kNoRow) return nullptr;
    if (entry.key == key) return &entry;
  }
}

RowIndex::Entry* RowIndex::FindOrInsert(uint64_t key) {
  for (size_t i = Home(key);; i = (i + 1) & (capacity_ - 1)) {
    Entry& entry = entries_[i];
    if (entry.row != kNoRow && entry.key == key) return &entry;
    if (entry.row == kNoRow) {
      MUSTER_CHECK(size_ < Room(capacity_));
      entry.key = key;
      entry.generation = 0;
      ++size_;
      return &entry;
    }
  }
}

void RowIndex::Reserve(size_t more) {
  size_t capacity = capacity_ == 0 ? kCapacityMin : capacity_;
  while (Room(capacity) < size_ + more) capacity *= 2;
  if (capacity == capacity_) return;
  std::unique_ptr<Entry[]> old = std::move(entries_);
  const size_t old_capacity = capacity_;
  entries_ = std::make_unique<Entry[]>(capacity);
  capacity_ = capacity;
  for (size_t i = 0; i < old_capacity; ++i) {
    if (old[i].row == kNoRow) continue;
    size_t at = Home(old[i].key);
    while (entries_[at].row != kNoRow) at = (at + 1) & (capacity_ - 1);
    entries_[at] = old[i];
  }
}

}  // namespace muster::ps
