#pragma once

#include <cstdint>
#include <map>

namespace muster {

/// A set of uint64 kept as disjoint, non-adjacent half-open intervals [begin, end). Not
/// thread-safe; a value.
class IntervalSet {
 public:
  /// Adds [begin, end); begin < end.
  void Add(uint64_t begin, uint64_t end);
  void Add(uint64_t value) { Add(value, value + 1); }
  /// Removes [begin, end).
  void Remove(uint64_t begin, uint64_t end);
  bool Contains(uint64_t value) const;
  /// The number of values in the set.
  uint64_t count() const { return count_; }
  bool empty() const { return intervals_.empty(); }
  /// begin -> end, ascending.
  const std::map<uint64_t, uint64_t>& intervals() const { return intervals_; }
  friend bool operator==(const IntervalSet&, const IntervalSet&) = default;

 private:
  std::map<uint64_t, uint64_t> intervals_;
  uint64_t count_ = 0;
};

}  // namespace muster
