#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "sharding/stream/stream_types.h"

namespace muster {

struct StreamCutOptions {
  uint32_t minibatch_size = 1;
  uint32_t minibatches_per_shard = 1;
  /// A range that is not full is cut when its first offset has waited this long.
  std::chrono::nanoseconds max_delay{std::chrono::seconds(1)};
};

/// Cuts a stream into ranges while it grows: full ones at once, partial ones after a delay or at
/// the dataset's end, one topic partition after the other in turn. Whatever it cuts is contiguous
/// in each topic partition, from where the dataset begins there.
///
/// Pure; not thread-safe. `now` never decreases.
class StreamCutter {
 public:
  /// `positions`: how far it had come before, in any order; `next_step`: minibatches cut so far.
  StreamCutter(StreamCutOptions options, std::span<const StreamPosition> positions,
               uint64_t next_step);

  /// Takes in what a look has shown. A topic partition that is new begins at its look's
  /// `begin`; when the dataset is at its end, it is none of its own.
  void See(std::span<const PartitionLook> looks, TimePoint now, WallTime wall);

  /// A range, and whether retention had taken its records before they could be cut.
  struct Cut {
    StreamRange range;
    bool lost = false;
  };
  /// What is due, `ranges_max` at most; lost ranges are not counted.
  std::vector<Cut> CutDue(uint64_t ranges_max, TimePoint now);

  /// The dataset has an end and everything before it is cut. False while no topic partition is
  /// known.
  bool AtEnd() const;
  /// Topic partitions whose log ends before what was cut, or before where the dataset begins: the
  /// topic was made anew, or the broker has lost records.
  std::vector<TopicPartition> Truncated() const;

  struct Progress {
    StreamPosition position;
    uint64_t log_begin = 0;
    uint64_t stable_end = 0;
    uint64_t log_end = 0;
    /// Whether the three above are known: there was a look since the start.
    bool seen = false;
    /// Of the first offset that is not cut; none: there is none.
    std::optional<WallTime> uncut_seen;
  };
  /// By topic partition.
  std::vector<Progress> ProgressOfAll() const;
  uint64_t next_step() const { return next_step_; }
  /// Topic partitions whose position has changed since the last call.
  std::vector<StreamPosition> TakeChanged();

 private:
  /// The log's end as it was at a time.
  struct EndSeen {
    uint64_t stable_end = 0;
    TimePoint now;
    WallTime wall{0};
  };
  struct Partition {
    StreamPosition position;
    uint64_t log_begin = 0;
    uint64_t stable_end = 0;
    uint64_t log_end = 0;
    bool seen = false;
    /// The last look had every other partition of the topic.
    bool missing = false;
    /// Ends beyond the cut, ascending; merged when there are many.
    std::deque<EndSeen> ends_seen;
    bool changed = false;
  };
  /// The end of what may be cut now.
  static uint64_t Limit(const Partition& partition);
  std::optional<Cut> CutOne(Partition* partition, TimePoint now);
  Cut Take(Partition* partition, uint64_t end, bool lost);

  StreamCutOptions options_;
  std::map<TopicPartition, Partition> partitions_;
  uint64_t next_step_ = 0;
  /// Whose turn it is.
  TopicPartition turn_;
};

}  // namespace muster
