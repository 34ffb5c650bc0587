#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/words/types.h"

namespace muster {

/// Watches if the server of one slot (any of its processes) fails to write snapshots. A value; not
/// thread-safe.
class SnapshotTrouble {
 public:
  enum class Change : uint8_t { kNone, kBegan, kOver };
  struct Report {
    std::string error;  // of snapshots; empty: none
    DoneSeq committed;  // the job's newest commit
  };
  /// Takes the server's newest report. On a nearly full disk, small snapshots work and large ones
  /// fail, so the trouble is over only after `turn` without an error: every partition has had its
  /// turn.
  Change Take(const Report& report, TimePoint now, std::chrono::nanoseconds turn);

  bool active() const { return failed_at_.has_value(); }
  /// Since when it fails and nothing was committed. Requires: active.
  TimePoint since() const { return since_; }
  /// "nothing was committed for 2:10, because ps-0 cannot write its snapshots: cannot write /...",
  /// "nothing was committed for 2:10: the disk of ps-0's snapshots is full: cannot write /...".
  /// Empty while that is too short to tell.
  std::string Text(std::string_view server, TimePoint now) const;

 private:
  std::optional<TimePoint> failed_at_;  // the newest failure
  TimePoint since_;
  Report newest_;
};

}  // namespace muster
