#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "master/core/streams/stream_look.h"
#include "master/core/streams/stream_table.h"

namespace muster {

/// Looks at a source that grows, on its own thread, and reports what it sees to the master's core.
/// Thread-safe.
class SourceFollower {
 public:
  virtual ~SourceFollower() = default;
  virtual void Start() = 0;
  /// Does not wait.
  virtual void RequestStop() = 0;
  /// Joins. Idempotent.
  virtual void Stop() = 0;
};

/// What a follower works with.
struct FollowOptions {
  using Progress = std::vector<StreamTable::Progress>;
  /// Tells the core, and returns the dataset's progress after it is journaled. Blocks; an error
  /// does not end the follower.
  using Tell = std::function<absl::StatusOr<Progress>(const StreamLook&)>;

  /// The core's present value.
  Progress progress;
  Tell tell;
  /// Outlives the follower.
  const Clock* clock = nullptr;
};

}  // namespace muster
