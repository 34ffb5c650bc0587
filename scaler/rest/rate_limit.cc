#include "scaler/rest/rate_limit.h"

#include <algorithm>

namespace muster::scaler::rest {

std::optional<std::chrono::nanoseconds> RateLimiter::Take(TimePoint now) {
  const std::chrono::duration<double> passed = std::max(now - at_, TimePoint::duration::zero());
  at_ = std::max(at_, now);
  left_ = std::min(rate_.burst, left_ + passed.count() * rate_.per_second);
  if (left_ >= 1) {
    left_ -= 1;
    return std::nullopt;
  }
  const std::chrono::duration<double> wait((1 - left_) / rate_.per_second);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(wait);
}

}  // namespace muster::scaler::rest
