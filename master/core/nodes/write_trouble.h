#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/words/types.h"

namespace muster {

/// Watches if a node (any process of a server's slot, one process of a worker) fails to write what
/// must be stored, and the job gets nowhere meanwhile. A value; not thread-safe.
class WriteTrouble {
 public:
  enum class Change : uint8_t { kNone, kBegan, kOver };
  struct Report {
    std::string error;  // empty: none
    DoneSeq progress;   // another one: the job gets on
  };
  /// Takes the node's newest report. On a nearly full disk, small objects work and large ones fail,
  /// so the trouble is over only after `turn` without an error.
  Change Take(const Report& report, TimePoint now, std::chrono::nanoseconds turn);

  bool active() const { return failed_at_.has_value(); }
  /// Since when it fails and the job made no progress. Requires: active.
  TimePoint since() const { return since_; }

  /// What is written, for people.
  struct Words {
    std::string_view nothing;  // "nothing was committed"
    std::string_view what;     // "snapshots"
    /// A store that is away for a moment is no trouble of the job.
    std::chrono::seconds told_after;
  };
  static constexpr Words kSnapshots{"nothing was committed", "snapshots", std::chrono::seconds(10)};
  /// A worker itself waits some seconds before it reports one.
  static constexpr Words kOutputs{"no outputs were written", "outputs", std::chrono::seconds(5)};
  /// "nothing was committed for 2:10, because ps-0 cannot write its snapshots: cannot write /...",
  /// "nothing was committed for 2:10: the disk of ps-0's snapshots is full: cannot write /...".
  /// Empty while that is too short to tell.
  std::string Text(std::string_view node, const Words& words, TimePoint now) const;

 private:
  std::optional<TimePoint> failed_at_;  // the newest failure
  TimePoint since_;
  Report newest_;
};

}  // namespace muster
