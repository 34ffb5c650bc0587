#include "kubernetes/model/retry_wait.h"

#include <algorithm>

#include "base/backoff.h"

namespace muster::kubernetes {
namespace {

constexpr BackoffLimits kBackoff{.first = std::chrono::milliseconds(200),
                                 .longest = std::chrono::seconds(10)};

}  // namespace

std::chrono::milliseconds RetryWait(uint32_t failures,
                                    std::optional<std::chrono::seconds> retry_after, Rng* random) {
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(
      Spread(PauseAfter(failures, kBackoff), random));
  const std::chrono::milliseconds asked = retry_after.value_or(std::chrono::seconds(0));
  return std::max(wait, asked);
}

}  // namespace muster::kubernetes
