#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"

namespace muster::sdk {

/// Holds values by name, at most `capacity`. The least recently used one is removed first. Not
/// thread-safe.
template <typename Value>
class LruCache {
 public:
  /// Requires capacity > 0.
  explicit LruCache(size_t capacity) : capacity_(capacity) { MUSTER_CHECK(capacity > 0); }

  /// Null if there is none. Valid until the next call that is not const.
  Value* Find(const std::string& name) {
    auto it = entries_.find(name);
    if (it == entries_.end()) return nullptr;
    newest_first_.splice(newest_first_.begin(), newest_first_, it->second);
    return &it->second->second;
  }
  /// Puts a value. It replaces one of the same name.
  void Put(const std::string& name, Value value) {
    if (Value* known = Find(name)) {
      *known = std::move(value);
      return;
    }
    newest_first_.emplace_front(name, std::move(value));
    entries_[name] = newest_first_.begin();
    if (entries_.size() <= capacity_) return;
    entries_.erase(newest_first_.back().first);
    newest_first_.pop_back();
  }
  void Clear() {
    entries_.clear();
    newest_first_.clear();
  }
  size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<std::string, Value>>;
  const size_t capacity_;
  Entries newest_first_;
  std::map<std::string, typename Entries::iterator> entries_;
};

}  // namespace muster::sdk
