#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/backoff.h"
#include "base/clock.h"

namespace muster {

struct RetryLimits {
  std::chrono::nanoseconds first{std::chrono::milliseconds(100)};
  std::chrono::nanoseconds longest{std::chrono::seconds(2)};
  /// The time from the first try to the beginning of the last one, without the time that TryTime
  /// excuses. It is shorter than the time that a server has to end, because callers try again later
  /// by themselves.
  std::chrono::nanoseconds total{std::chrono::seconds(5)};
};

/// Whether the time of a try counts towards RetryLimits::total. If bytes move slowly, that does not
/// mean that the service is away. Without the excuse, a part that takes longer than `total` would
/// never be tried again.
enum class TryTime : uint8_t { kCounts, kExcused };

/// When to send a request again, and when to give up. Pure; not thread-safe.
class Retries {
 public:
  Retries(RetryLimits limits, TimePoint now, uint64_t seed);
  /// A try begins. (The first began when this was made.)
  void Begin(TimePoint now) { tried_at_ = now; }
  /// How long to wait after a failure at `now`; none: give up. It is at least as long as the
  /// service `asked`. But if the service asked for more time than is left, the last try comes at
  /// the end of that time.
  std::optional<std::chrono::nanoseconds> After(TimePoint now, std::chrono::nanoseconds asked = {},
                                                TryTime time = TryTime::kCounts);

 private:
  const RetryLimits limits_;
  TimePoint begin_;  // moved back by the excused time
  TimePoint tried_at_;
  Rng rng_;
  Backoff backoff_;
};

/// The pause in the value of a header "Retry-After", if it is a number of seconds; otherwise 0. (A
/// date is ignored, because it needs equal clocks.)
std::chrono::nanoseconds AskedPause(std::string_view retry_after);

}  // namespace muster
