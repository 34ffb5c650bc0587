#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ps/engine/table.h"

namespace muster::ps {

/// Prefetches for the next groups of a push while earlier ones are applied: first their tables,
/// then the places of their keys in the index, and a little later their rows. It changes nothing.
/// Groups are announced ahead (Expect, in order, while wants_more), and Pass is called when a group
/// is applied.
class PushAhead {
 public:
  PushAhead() = default;
  virtual ~PushAhead() = default;
  PushAhead(const PushAhead&) = delete;
  PushAhead& operator=(const PushAhead&) = delete;

  void Clear() {
    announced_ = passed_ = {};
    places_ = rows_ = {};
  }
  bool wants_more() const {
    return announced_.keys - passed_.keys < kTablesAhead &&
           announced_.groups - passed_.groups < kGroups;
  }
  /// Announces a group. A group with a null table is skipped. `keys` must stay as they are until
  /// they are passed.
  void Expect(const Table* table, std::span<const uint64_t> keys) {
    if (table != nullptr) table->PrefetchForPush();
    const size_t count = Counted(keys.size());
    groups_[announced_.groups++ % kGroups] = {table, keys.data(), count};
    announced_.keys += count;
  }
  /// Prefetches places and rows. Call it when all wanted groups are announced.
  void FindRows() {
    Advance(kPlacesAhead, &places_,
            [](const Table& table, uint64_t key) { table.PrefetchPlace(key); });
    Advance(kRowsAhead, &rows_, [](const Table& table, uint64_t key) { table.PrefetchRow(key); });
  }
  /// The oldest announced group, which has `keys` keys, is being applied.
  void Pass(size_t keys) {
    ++passed_.groups;
    passed_.keys += Counted(keys);
  }
  size_t passed_groups() const { return passed_.groups; }

  /// A partition has applied the oldest announced group: announces and prefetches more.
  void Applied(size_t keys) {
    Pass(keys);
    Refill();
  }
  /// Announces as many groups as wanted, and calls FindRows.
  virtual void Refill() {}

 private:
  /// A group may have more keys, but Table::Apply prefetches the rest of a large group itself.
  static constexpr size_t kGroupMax = 64;
  static constexpr size_t kTablesAhead = 128;
  static constexpr size_t kPlacesAhead = 96;
  static constexpr size_t kRowsAhead = 64;
  static constexpr size_t kGroups = 256;  // that are announced at a time, at most
  static size_t Counted(size_t keys) { return std::min(keys, kGroupMax); }

  struct Group {
    const Table* table;
    const uint64_t* keys;
    size_t count;
  };
  struct Counts {
    size_t groups = 0;
    size_t keys = 0;
  };
  /// Everything before this key of this group is done.
  struct Cursor {
    Counts before;
    size_t key = 0;
  };

  template <typename Visit>
  void Advance(size_t keys_ahead, Cursor* cursor, Visit visit) {
    if (cursor->before.groups < passed_.groups) *cursor = {passed_, 0};
    while (cursor->before.groups < announced_.groups &&
           cursor->before.keys + cursor->key - passed_.keys < keys_ahead) {
      const Group& group = groups_[cursor->before.groups % kGroups];
      if (cursor->key == group.count) {
        *cursor = {{cursor->before.groups + 1, cursor->before.keys + group.count}, 0};
      } else {
        if (group.table != nullptr) visit(*group.table, group.keys[cursor->key]);
        ++cursor->key;
      }
    }
  }

  std::array<Group, kGroups> groups_;
  Counts announced_;
  Counts passed_;
  Cursor places_;
  Cursor rows_;
};

}  // namespace muster::ps
