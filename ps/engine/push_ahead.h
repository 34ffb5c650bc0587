#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ps/engine/table.h"

namespace muster::ps {

/// Prefetches for the next parts of a push while earlier parts are applied: first the places of
/// their keys in the index, and a little later their rows. It changes nothing. The caller announces
/// groups ahead (Expect, in order, while wants_more), and calls Pass when it applies a group.
class PushAhead {
 public:
  void Clear() { expected_ = found_ = passed_ = 0; }
  bool wants_more() const { return expected_ - passed_ < kPlacesAhead; }
  /// Announces a group. A group with a null table is skipped. `keys` must stay as they are until
  /// they are passed.
  void Expect(const Table* table, std::span<const uint64_t> keys) {
    for (const uint64_t key : keys.first(Counted(keys.size()))) {
      if (table != nullptr) table->PrefetchPlace(key);
      keys_[expected_++ % keys_.size()] = {table, key};
    }
  }
  /// Prefetches rows. Call it when all wanted groups are announced.
  void FindRows() {
    for (; found_ < expected_ && found_ - passed_ < kRowsAhead; ++found_) {
      const auto& [table, key] = keys_[found_ % keys_.size()];
      if (table != nullptr) table->PrefetchRow(key);
    }
  }
  /// The oldest announced group, which has `keys` keys, is being applied.
  void Pass(size_t keys) {
    passed_ += Counted(keys);
    found_ = std::max(found_, passed_);
  }

 private:
  /// A group may have more keys, but Table::Apply prefetches the rest of a large group itself.
  static constexpr size_t kGroupMax = 32;
  static constexpr size_t kPlacesAhead = 64;
  static constexpr size_t kRowsAhead = 32;
  static size_t Counted(size_t keys) { return std::min(keys, kGroupMax); }

  struct Key {
    const Table* table;
    uint64_t key;
  };
  std::array<Key, 128> keys_;  // if a part has more keys, the first ones are overwritten
  size_t expected_ = 0;
  size_t found_ = 0;
  size_t passed_ = 0;
};

}  // namespace muster::ps
