#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace muster::kafka::internal {

/// The topic partitions that are fetched ahead while nobody reads them, and which of them stop.
/// Pure; not thread-safe. `now` never decreases.
class IdleFetches {
 public:
  struct Options {
    /// The most topic partitions that are fetched at once, those that are being read included.
    size_t most = 64;
    /// What was read ahead and not used for this long is dropped.
    std::chrono::nanoseconds unused_max{std::chrono::seconds(5)};
  };
  /// Topic and partition.
  using Partition = std::pair<std::string, uint32_t>;

  explicit IdleFetches(Options options) : options_(options) {}

  /// Nobody reads it any more, or it was announced; it is fetched from now on. `expected`: somebody
  /// will probably read it soon.
  void Add(const Partition& partition, bool expected, TimePoint now);
  /// Somebody reads it now, or it is not fetched any more. It need not be here.
  void Remove(const Partition& partition);
  /// Removes those that must stop, while `reading` others are read: first those that are not
  /// expected, the longest unused first.
  std::vector<Partition> TakeSurplus(size_t reading, TimePoint now);
  bool empty() const { return order_.empty(); }

 private:
  struct Fetch {
    Partition partition;
    bool expected = false;
    TimePoint used;
  };
  const Options options_;
  std::list<Fetch> order_;  // the longest unused one is in front
  std::map<Partition, std::list<Fetch>::iterator> places_;
};

}  // namespace muster::kafka::internal
