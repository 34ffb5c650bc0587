#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"

namespace muster::scaler::rest {

struct Rate {
  double per_second = 0;
  /// How many requests may come at once after a pause.
  double burst = 0;
};

/// A token bucket. A value with one owner. Pure.
class RateLimiter {
 public:
  RateLimiter(Rate rate, TimePoint now) : rate_(rate), left_(rate.burst), at_(now) {}

  /// Takes one token. If there is none, returns how long to wait for it.
  std::optional<std::chrono::nanoseconds> Take(TimePoint now);

 private:
  Rate rate_;
  double left_;
  TimePoint at_;
};

}  // namespace muster::scaler::rest
