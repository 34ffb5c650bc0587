#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "master/core/durable_state.h"

namespace muster {

/// For how long the job has run, all runs together: a restart of the master does not begin it anew,
/// and the time between two runs is left out. Goes by the wall clock; what that loses or gains
/// while a run goes on shows. A value.
class RunClock {
 public:
  /// A new run begins at `now`. `last_word`: when an earlier run, if there was one, was last heard
  /// of.
  void BeginRun(const std::optional<MetaRecord>& before, std::optional<WallTime> last_word,
                WallTime now);
  /// The run goes on, or is shown, as the journal has it.
  void Resume(const MetaRecord& meta, WallTime now);
  void Save(MetaRecord* meta) const;
  /// Up to `until`; never negative.
  std::chrono::milliseconds Running(WallTime until) const;

 private:
  std::chrono::milliseconds earlier_{0};
  WallTime began_{0};
};

}  // namespace muster
