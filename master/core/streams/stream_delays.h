#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/delay_histogram.h"

namespace muster {

/// How long the records of a topic took from their timestamps until their minibatch was applied, as
/// workers tell: of all, and of about the last minute. A value. Not thread-safe.
class StreamDelays {
 public:
  /// What a worker process told before and tells now. A process that is heard for the first time
  /// (`before` null) may tell of hours: that is not of the last minute.
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
