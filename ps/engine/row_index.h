#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/random.h"
#include "ps/engine/garbage.h"
#include "ps/engine/prefetch.h"
#include "ps/engine/slab_memory.h"

namespace muster::ps {

/// Key -> row number of one table in one partition: open addressing with linear probing, 16 bytes
/// an entry, one cache line a lookup in most cases, and a prefetch, so that a batch of keys is
/// looked up at memory bandwidth and not at memory latency. Keys are never removed; every 64-bit
/// key is valid. Not thread-safe.
///
/// It grows step by step: the larger array starts empty beside the old one, and every Reserve moves
/// a few entries, so that no insert waits for all of them. Until all have moved, a key is in the
/// new array, or otherwise in the old one. A moved entry also stays in the old array, but is never
/// found there, because lookups begin with the new array.
class RowIndex {
 public:
  static constexpr uint32_t kNoRow = UINT32_MAX;
  /// Entries that Reserve moves for each key that it makes room for, before and after it grows.
  static constexpr size_t kMovesPerKey = 4;

  class Entry {
   public:
    uint64_t key = 0;
    uint32_t row() const { return ~inverted_row_; }
    void set_row(uint32_t row) { inverted_row_ = ~row; }

   private:
    uint32_t inverted_row_ = 0;  // so that zeroed memory holds no row

   public:
    /// Snapshot generation of the row's last change. It is kept here because this line is in the
    /// cache when a push needs it.
    uint32_t generation = 0;
  };

  /// nullptr if absent. Valid until the next Reserve.
  const Entry* Find(uint64_t key) const {
    const Entry* entry = now_.Find(key);
    return entry == nullptr && old_.capacity != 0 ? old_.Find(key) : entry;
  }

  /// The key's entry; a new one has row kNoRow, and the caller must set it. Requires room: Reserve
  /// was called for it. Pointers stay valid until the next Reserve.
  Entry* FindOrInsert(uint64_t key);

  /// Makes room for `more` new keys. Returns how many entries of the old array it looked at: at
  /// most 2 * kMovesPerKey * more.
  size_t Reserve(size_t more);

  /// Prefetches the place of the key.
  void Prefetch(uint64_t key) const {
    if (now_.capacity != 0) ps::Prefetch(&now_.entries[now_.Home(key)]);
    if (old_.capacity != 0) ps::Prefetch(&old_.entries[old_.Home(key)]);
  }

  /// Hands out the arrays that it has outgrown.
  void TakeGarbage(Garbage* garbage);

  size_t size() const { return size_; }
  size_t bytes() const { return (now_.capacity + old_.capacity) * sizeof(Entry); }

 private:
  struct Slots {
    std::unique_ptr<Entry[], GiveSlab> entries;
    size_t capacity = 0;  // 0 or a power of two

    size_t Home(uint64_t key) const { return Mix64(key) & (capacity - 1); }
    const Entry* Find(uint64_t key) const;
    /// The key's entry, or the free one where it belongs.
    Entry* Place(uint64_t key);
  };

  void Grow(size_t capacity);
  size_t Move(size_t count);

  Slots now_;
  Slots old_;         // while it grows
  size_t moved_ = 0;  // entries of old_ that were looked at
  size_t size_ = 0;
  Garbage garbage_;
};

}  // namespace muster::ps
