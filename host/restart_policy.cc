#include "host/restart_policy.h"

#include <algorithm>

#include "base/backoff.h"

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
  decision.delay = std::chrono::duration_cast<std::chrono::milliseconds>(
      PauseAfter(exits_ - 1, {.first = options_.backoff_initial, .longest = options_.backoff_max}));
  return decision;
}

}  // namespace muster
