#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace muster::ps {

/// Allows one log line of a kind in each interval and counts the others, so that strangers cannot
/// fill the disk with logs. A value with one owner. Pure.
class LogThrottle {
 public:
  explicit LogThrottle(std::chrono::nanoseconds interval) : interval_(interval) {}

  /// If the line may be written now, returns how many lines were left out since the last one.
  /// Otherwise returns nothing.
  std::optional<uint64_t> Admit(TimePoint now) {
    if (now < next_) {
      ++left_out_;
      return std::nullopt;
    }
    next_ = now + interval_;
    const uint64_t left_out = left_out_;
    left_out_ = 0;
    return left_out;
  }

 private:
  std::chrono::nanoseconds interval_;
  TimePoint next_{};
  uint64_t left_out_ = 0;
};

}  // namespace muster::ps
