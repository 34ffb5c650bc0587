#include "ps/engine/row_index.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace muster::ps {
namespace {
constexpr size_t kCapacityMin = 16;
/// A smaller array is freed at once, because that takes no time.
constexpr size_t kGarbageBytesMin = 1u << 20;
/// The load is at most 3/4. Linear probing with a good hash then looks at 2.5 entries on average
/// (Knuth, The Art of Computer Programming 3, section 6.4, equation 61), mostly in one cache line.
constexpr size_t Room(size_t capacity) {
  return capacity / 4 * 3;
}
}  // namespace

const RowIndex::Entry* RowIndex::Slots::Find(uint64_t key) const {
  if (capacity == 0) return nullptr;
  for (size_t i = Home(key);; i = (i + 1) & (capacity - 1)) {
    const Entry& entry = entries[i];
    if (entry.row() == kNoRow) return nullptr;
    if (entry.key == key) return &entry;
  }
}

RowIndex::Entry* RowIndex::Slots::Place(uint64_t key) {
  for (size_t i = Home(key);; i = (i + 1) & (capacity - 1)) {
    Entry& entry = entries[i];
    if (entry.row() == kNoRow || entry.key == key) return &entry;
  }
}

RowIndex::Entry* RowIndex::FindOrInsert(uint64_t key) {
  MUSTER_CHECK(now_.capacity != 0);
  Entry* const entry = now_.Place(key);
  if (entry->row() != kNoRow) return entry;
  if (old_.capacity != 0) {
    if (const Entry* old = old_.Find(key); old != nullptr) return const_cast<Entry*>(old);
  }
  MUSTER_CHECK(size_ < Room(now_.capacity));
  entry->key = key;  // its generation is 0, because the entry was not used before
  ++size_;
  return entry;
}

size_t RowIndex::Reserve(size_t more) {
  size_t looked = Move(kMovesPerKey * more);
  size_t capacity = std::max(now_.capacity, kCapacityMin);
  while (Room(capacity) < size_ + more) capacity *= 2;
  if (capacity == now_.capacity) return looked;
  // The old array has no entries left to move: since the last growth, Reserve has made room for at
  // least 3/4 as many keys as the old array has entries.
  MUSTER_CHECK(old_.capacity == 0);
  Grow(capacity);
  looked += Move(kMovesPerKey * more);
  return looked;
}

void RowIndex::Grow(size_t capacity) {
  static_assert(std::is_trivially_destructible_v<Entry> && std::is_trivially_copyable_v<Entry>);
  // The system zeroes the pages of a large array when they are first used.
  const size_t bytes = capacity * sizeof(Entry);
  std::unique_ptr<Entry[], GiveSlab> entries(static_cast<Entry*>(slab_memory::TakeZeroed(bytes)),
                                             GiveSlab{bytes});
  garbage_.clear();  // drops the last growth's garbage if it was not taken
  old_ = std::exchange(now_, Slots());
  now_.entries = std::move(entries);
  now_.capacity = capacity;
}

size_t RowIndex::Move(size_t count) {
  const size_t begin = moved_;
  const size_t end = std::min(begin + count, old_.capacity);
  for (; moved_ < end; ++moved_) {
    const Entry& entry = old_.entries[moved_];
    if (entry.row() == kNoRow) continue;
    Entry* const to = now_.Place(entry.key);
    MUSTER_CHECK(to->row() == kNoRow);
    *to = entry;
  }
  const size_t looked = moved_ - begin;
  if (moved_ == old_.capacity) {
    if (old_.capacity * sizeof(Entry) >= kGarbageBytesMin) {
      Discard(std::move(old_.entries), &garbage_);
    }
    old_ = Slots();
    moved_ = 0;
  }
  return looked;
}

void RowIndex::TakeGarbage(Garbage* garbage) {
  std::ranges::move(std::exchange(garbage_, {}), std::back_inserter(*garbage));
}

}  // namespace muster::ps
