#include "kubernetes/model/retry_wait.h"

#include <algorithm>

namespace muster::kubernetes {
namespace {

constexpr uint64_t kFirstMs = 200;
constexpr uint64_t kLongestMs = 10'000;

}  // namespace

std::chrono::milliseconds RetryWait(uint32_t failures,
                                    std::optional<std::chrono::seconds> retry_after,
                                    uint64_t random) {
  const uint32_t doublings = failures > 0 ? std::min(failures - 1, 10U) : 0;
  const uint64_t whole = std::min(kFirstMs << doublings, kLongestMs);
  const std::chrono::milliseconds wait(whole / 2 + random % (whole / 2 + 1));
  const std::chrono::milliseconds asked = retry_after.value_or(std::chrono::seconds(0));
  return std::max(wait, asked);
}

}  // namespace muster::kubernetes
