#include "master/core/run_clock.h"

#include <algorithm>

namespace muster {

void RunClock::BeginRun(const std::optional<MetaRecord>& before, std::optional<WallTime> last_word,
                        WallTime now) {
  earlier_ = std::chrono::milliseconds{0};
  if (before.has_value()) {
    Resume(*before, now);
    earlier_ = Running(std::max(last_word.value_or(WallTime{0}), seen_));
  }
  began_ = now;
  seen_ = now;
}

void RunClock::Resume(const MetaRecord& meta, WallTime now) {
  earlier_ = meta.earlier_runs;
  // A journal of an earlier version does not say when its run began.
  began_ = meta.run_began == WallTime{0} ? now : meta.run_began;
  seen_ = meta.seen;
}

void RunClock::See(WallTime now) {
  if (now - seen_ >= kSeenInterval) seen_ = now;
}

void RunClock::Save(MetaRecord* meta) const {
  meta->run_began = began_;
  meta->earlier_runs = earlier_;
  meta->seen = seen_;
}

std::chrono::milliseconds RunClock::Running(WallTime until) const {
  const WallTime passed = std::max(until - began_, WallTime{0});
  return earlier_ + std::chrono::duration_cast<std::chrono::milliseconds>(passed);
}

}  // namespace muster
