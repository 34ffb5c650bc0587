#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace muster {

/// The times at which a partition's turn for a snapshot comes: once per interval, and for different
/// partitions at times that are spread evenly over the interval. So a server always copies and
/// writes a little, and never everything at once, which would take the processor from workers.
/// Pure.
class SnapshotTurn {
 public:
  /// The `index`-th of `partitions` on the `server`-th of `servers`. Servers, which may share a
  /// machine, also take turns.
  SnapshotTurn(uint32_t server, uint32_t servers, size_t index, size_t partitions)
      : place_(index * servers + server), places_(partitions * servers) {}

  /// True if a turn came after `last` and until `now`. It comes once in any span as long as the
  /// interval. If the interval is 0, it is always true.
  bool Came(TimePoint last, TimePoint now, std::chrono::nanoseconds interval) const {
    return interval.count() == 0 || Count(now, interval) > Count(last, interval);
  }

 private:
  /// The number of turns until `time`, plus a constant.
  int64_t Count(TimePoint time, std::chrono::nanoseconds interval) const {
    const auto offset = interval / static_cast<int64_t>(places_) * static_cast<int64_t>(place_);
    return (time.time_since_epoch() + (interval - offset)) / interval;
  }

  uint64_t place_;
  uint64_t places_;
};

}  // namespace muster
