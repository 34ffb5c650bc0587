#include "store/names/retry.h"

#include <algorithm>
#include <charconv>

namespace muster {

Retries::Retries(RetryLimits limits, TimePoint now, uint64_t seed)
    : limits_(limits),
      begin_(now),
      tried_at_(now),
      rng_(seed),
      backoff_({limits.first, limits.longest}) {}

std::optional<std::chrono::nanoseconds> Retries::After(TimePoint now,
                                                       std::chrono::nanoseconds asked,
                                                       TryTime time) {
  if (time == TryTime::kExcused) begin_ += now - tried_at_;
  const std::chrono::nanoseconds wait = backoff_.Failed(&rng_);
  const std::chrono::nanoseconds left = limits_.total - (now - begin_);
  if (wait > left) return std::nullopt;
  return std::min(std::max(wait, asked), left);
}

std::chrono::nanoseconds AskedPause(std::string_view retry_after) {
  constexpr uint32_t kSecondsMax = 3600;
  uint32_t seconds = 0;
  const char* const end = retry_after.data() + retry_after.size();
  const auto [last, error] = std::from_chars(retry_after.data(), end, seconds);
  if (error != std::errc() || last != end) return {};
  return std::chrono::seconds(std::min(seconds, kSecondsMax));
}

}  // namespace muster
