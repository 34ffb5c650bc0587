#include "host/restart_policy.h"

#include <algorithm>

namespace muster {

RestartPolicy::Decision RestartPolicy::OnExit(Progress progress) {
  if (progress == Progress::kMade) exits_ = 0;
  if (exits_ < std::numeric_limits<uint32_t>::max() - 1) ++exits_;
  Decision decision{.exits = exits_};
  if (exits_ >= std::max<uint32_t>(options_.crash_loop_exits, 1)) {
    decision.crash_loop = true;
    return decision;
  }
  if (exits_ == 1) return decision;
  // A factor of 2^20 exceeds every sensible maximum, and a larger one would overflow.
  const uint32_t doublings = std::min<uint32_t>(exits_ - 2, 20);
  decision.delay =
      std::min(options_.backoff_max, options_.backoff_initial * (int64_t{1} << doublings));
  return decision;
}

}  // namespace muster
