#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "master/core/durable_state.h"

namespace muster {

/// How long the job has run, all runs together, without the time between runs. It continues over a
/// restart of the master. It uses the wall clock, so changes of that clock during a run are
/// visible. A value.
class RunClock {
 public:
  /// How much of a run is lost at most if everything is killed at once: a run without news writes
  /// to the journal this often.
  static constexpr std::chrono::seconds kSeenInterval{5};

  /// A new run begins at `now`. `last_word`: the time of the last news of an earlier run, if there
  /// was one. That run ended then, or when it was last seen.
  void BeginRun(const std::optional<MetaRecord>& before, std::optional<WallTime> last_word,
                WallTime now);
  /// The run continues, or is shown, with the values of the journal.
  void Resume(const MetaRecord& meta, WallTime now);
  /// The job runs at `now`. Takes note of it if kSeenInterval has passed.
  void See(WallTime now);
  /// When the job was last seen running, or when its run began.
  WallTime seen() const { return seen_; }
  void Save(MetaRecord* meta) const;
  /// Up to `until`; never negative.
  std::chrono::milliseconds Running(WallTime until) const;

 private:
  std::chrono::milliseconds earlier_{0};
  WallTime began_{0};
  WallTime seen_{0};
};

}  // namespace muster
