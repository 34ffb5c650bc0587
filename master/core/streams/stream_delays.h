#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/delay_histogram.h"

namespace muster {

/// The time of a topic's records from their timestamps until their minibatch was applied, as
/// workers report it: for all records, and for about the last minute. A value. Not thread-safe.
class StreamDelays {
 public:
  /// Takes the earlier and the new report of a worker process. The first report of a process
  /// (`before` null) may cover hours, so it does not count for the last minute.
  void Hear(const DelayHistogram* before, const DelayHistogram& now, TimePoint at) {
    static const DelayHistogram kNone;
    total_.AddGrowth(before != nullptr ? *before : kNone, now);
    if (before == nullptr) return;
    Rotate(at);
    newer_.AddGrowth(*before, now);
  }

  const DelayHistogram& total() const { return total_; }
  /// Of the last half minute to minute, as of `at`.
  DelayHistogram Recent(TimePoint at) const {
    StreamDelays turned = *this;
    turned.Rotate(at);
    turned.newer_.AddGrowth({}, turned.older_);
    return turned.newer_;
  }

 private:
  static constexpr std::chrono::seconds kHalf{30};
  void Rotate(TimePoint at) {
    if (at - began_ < kHalf) return;
    older_ = at - began_ < 2 * kHalf ? newer_ : DelayHistogram();
    newer_ = {};
    began_ = at;
  }

  DelayHistogram total_, newer_, older_;
  TimePoint began_;  // of `newer_`
};

}  // namespace muster
