#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/random.h"

namespace muster::ps {

/// Key -> row number of one table in one partition: open addressing with linear probing, 16 bytes
/// an entry, one cache line a lookup in most cases, and a prefetch, so that a batch of keys is
/// looked up at memory bandwidth and not at memory latency. Keys are never removed; every 64-bit
/// key is valid. Not thread-safe.
class RowIndex {
 public:
  static constexpr uint32_t kNoRow = UINT32_MAX;
  struct Entry {
    uint64_t key = 0;
    uint32_t row = kNoRow;
    /// Snapshot generation of the row's last change; kept here, for the line is in the cache when a
    /// push needs it.
    uint32_t generation = 0;
  };

  /// nullptr when absent. Valid until the next Reserve.
  const Entry* Find(uint64_t key) const;
  Entry* Find(uint64_t key) { return const_cast<Entry*>(std::as_const(*this).Find(key)); }

  /// The key's entry; a new one has row kNoRow, and the caller must set it. Requires room: Reserve
  /// was called for it. Pointers stay valid until the next Reserve.
  Entry* FindOrInsert(uint64_t key);

  /// Makes room for `more` new keys.
  void Reserve(size_t more);

  /// Starts to load the place where the key is looked for.
  void Prefetch(uint64_t key) const {
    if (capacity_ != 0) __builtin_prefetch(&entries_[Home(key)]);
  }

  size_t size() const { return size_; }
  size_t bytes() const { return capacity_ * sizeof(Entry); }

 private:
  size_t Home(uint64_t key) const { return Mix64(key) & (capacity_ - 1); }

  std::unique_ptr<Entry[]> entries_;
  size_t capacity_ = 0;  // 0 or a power of two
  size_t size_ = 0;
};

}  // namespace muster::ps
