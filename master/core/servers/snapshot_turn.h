#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace muster {

/// When a partition's turn to be snapshotted comes: once in an interval, each at a time of its own,
/// evenly spread over it. So a server copies and writes a little all the time instead of everything
/// at once, with which workers had to share the processor. Pure.
class SnapshotTurn {
 public:
  /// The `index`-th of `partitions` on the `server`-th of `servers`: those of several servers,
  /// which may share a machine, come in turns, too.
  SnapshotTurn(uint32_t server, uint32_t servers, size_t index, size_t partitions)
      : place_(index * servers + server), places_(partitions * servers) {}

  /// Whether it came after `last` and until `now`. In any span of an interval it comes once; when
  /// the interval is 0, always.
  bool Came(TimePoint last, TimePoint now, std::chrono::nanoseconds interval) const {
    return interval.count() == 0 || Count(now, interval) > Count(last, interval);
  }

 private:
  /// Turns until `time`, give or take a constant.
  int64_t Count(TimePoint time, std::chrono::nanoseconds interval) const {
    const auto offset = interval / static_cast<int64_t>(places_) * static_cast<int64_t>(place_);
    return (time.time_since_epoch() + (interval - offset)) / interval;
  }

  uint64_t place_;
  uint64_t places_;
};

}  // namespace muster
