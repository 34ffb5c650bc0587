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
  /// A new run begins at `now`. `last_word`: the time of the last news of an earlier run, if there
  /// was one.
  void BeginRun(const std::optional<MetaRecord>& before, std::optional<WallTime> last_word,
                WallTime now);
  /// The run continues, or is shown, with the values of the journal.
  void Resume(const MetaRecord& meta, WallTime now);
  void Save(MetaRecord* meta) const;
  /// Up to `until`; never negative.
  std::chrono::milliseconds Running(WallTime until) const;

 private:
  std::chrono::milliseconds earlier_{0};
  WallTime began_{0};
};

}  // namespace muster
