#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/random.h"

/// How long to pause before something is tried again. Pure.
namespace muster {

struct BackoffLimits {
  std::chrono::nanoseconds first{0};
  std::chrono::nanoseconds longest{0};
};

/// The pause after so many failures in a row: `first` after one (or none), twice as long after each
/// further one, and never more than `longest`.
constexpr std::chrono::nanoseconds PauseAfter(uint32_t failures, const BackoffLimits& limits) {
  constexpr uint32_t kDoublingsMax = 62;
  std::chrono::nanoseconds pause = std::min(limits.first, limits.longest);
  for (uint32_t i = std::min(failures, kDoublingsMax); i > 1; --i) {
    if (pause > limits.longest / 2) return limits.longest;
    pause *= 2;
  }
  return pause;
}

/// Between half of the pause and all of it, so that many clients of a server that comes back do not
/// ask it at the same moment.
inline std::chrono::nanoseconds Spread(std::chrono::nanoseconds pause, Rng* rng) {
  const auto half = static_cast<uint64_t>(pause.count() / 2);
  const uint64_t more = rng->Below(std::max<uint64_t>(half, 1));
  return std::chrono::nanoseconds(static_cast<int64_t>(half + more));
}

/// The pauses between the tries of one client: they grow, and are spread. Not thread-safe.
class Backoff {
 public:
  explicit Backoff(const BackoffLimits& limits) : limits_(limits) {}
  /// Something has failed: how long to pause.
  std::chrono::nanoseconds Failed(Rng* rng) {
    failures_ += failures_ < UINT32_MAX ? 1 : 0;
    return Spread(PauseAfter(failures_, limits_), rng);
  }
  /// The next failure is the first again.
  void Succeeded() { failures_ = 0; }

 private:
  const BackoffLimits limits_;
  uint32_t failures_ = 0;
};

}  // namespace muster
