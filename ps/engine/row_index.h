#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/random.h"
#include "ps/engine/garbage.h"
#include "ps/engine/prefetch.h"
#include "ps/engine/slab_memory.h"

namespace muster::ps {

/// Maps a key to a row number, for one table in one partition. It uses open addressing with linear
/// probing and 16 bytes for each entry. A lookup mostly touches one cache line. With prefetches, a
/// batch of keys is looked up at memory bandwidth and not at memory latency. Keys are never
/// removed. Every 64-bit key is valid. Not thread-safe.
///
/// It grows step by step, so that no insert waits until all entries have moved. The larger array
/// starts empty beside the old one, and every Reserve moves a few entries. Until all have moved, a
/// key is in the new array, or else in the old one. A moved entry also stays in the old array. It
/// is never found there, because lookups begin with the new array.
class RowIndex {
 public:
  static constexpr uint32_t kNoRow = UINT32_MAX;
  /// How many entries Reserve moves for each key that it makes room for. If it grows, it moves as
  /// many before and after that.
  static constexpr size_t kMovesPerKey = 4;

  class Entry {
   public:
    uint64_t key = 0;
    uint32_t row() const { return ~inverted_row_; }
    void set_row(uint32_t row) { inverted_row_ = ~row; }

   private:
    uint32_t inverted_row_ = 0;  // inverted, so that zeroed memory means "no row"

   public:
    /// The snapshot generation of the row's last change. It is kept here because this cache line is
    /// already loaded when a push needs it.
    uint32_t generation = 0;
  };

  /// Returns nullptr if the key is absent. Valid until the next Reserve.
  const Entry* Find(uint64_t key) const {
    const Entry* entry = now_.Find(key);
    return entry == nullptr && old_.capacity != 0 ? old_.Find(key) : entry;
  }

  /// Returns the key's entry. A new entry has row kNoRow, and the caller must set it. Requires that
  /// Reserve has made room for it. Pointers stay valid until the next Reserve.
  Entry* FindOrInsert(uint64_t key);

  /// Makes room for `more` new keys. Returns how many entries of the old array it looked at: at
  /// most 2 * kMovesPerKey * more.
  size_t Reserve(size_t more);

  /// Prefetches the place of the key.
  void Prefetch(uint64_t key) const {
    if (now_.capacity != 0) ps::Prefetch(&now_.entries[now_.Home(key)]);
    if (old_.capacity != 0) ps::Prefetch(&old_.entries[old_.Home(key)]);
  }

  /// Moves the arrays that are no longer needed to `garbage`.
  void TakeGarbage(Garbage* garbage);

  size_t size() const { return size_; }
  size_t bytes() const { return (now_.capacity + old_.capacity) * sizeof(Entry); }

 private:
  struct Slots {
    std::unique_ptr<Entry[], GiveSlab> entries;
    size_t capacity = 0;  // 0 or a power of two

    size_t Home(uint64_t key) const { return Mix64(key) & (capacity - 1); }
    const Entry* Find(uint64_t key) const;
    /// Returns the key's entry, or the free entry where the key belongs.
    Entry* Place(uint64_t key);
  };

  void Grow(size_t capacity);
  size_t Move(size_t count);

  Slots now_;
  Slots old_;         // used while the index grows
  size_t moved_ = 0;  // how many entries of old_ were looked at
  size_t size_ = 0;
  Garbage garbage_;
};

}  // namespace muster::ps
