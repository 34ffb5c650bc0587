#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace muster {

/// A map from numbers to numbers, kept as runs: consecutive keys with consecutive values take the
/// room of one. Not thread-safe; a value.
class RunMap {
 public:
  /// The keys [begin, end) have the values value, value + 1, ...
  struct Run {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t value = 0;
    friend bool operator==(const Run&, const Run&) = default;
  };

  /// Replaces what the key had.
  void Set(uint64_t key, uint64_t value);
  std::optional<uint64_t> Find(uint64_t key) const;
  /// Removes the key, and returns its value.
  std::optional<uint64_t> Take(uint64_t key);
  /// Removes every key below `limit`, and returns them in order.
  std::vector<Run> TakeBelow(uint64_t limit);
  bool empty() const { return runs_.empty(); }
  /// What it takes in memory grows with them.
  size_t run_count() const { return runs_.size(); }

 private:
  struct Rest {
    uint64_t end = 0;
    uint64_t value = 0;
  };
  using Runs = std::map<uint64_t, Rest>;
  /// The run that has the key, or runs_.end().
  Runs::const_iterator RunOf(uint64_t key) const;
  /// The run begins at `begin` instead, which is inside it or next to it.
  void BeginAt(Runs::const_iterator run, uint64_t begin);

  Runs runs_;
};

}  // namespace muster
