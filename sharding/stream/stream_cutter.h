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
  /// A range that is not full is cut after its first offset has waited this long.
  std::chrono::nanoseconds max_delay{std::chrono::seconds(1)};
};

/// Cuts a stream into ranges while it grows: full ones at once, partial ones after a delay or at
/// the dataset's end, one topic partition after the other in turn. Its ranges are contiguous in
/// each topic partition, from the dataset's begin there.
///
/// Pure; not thread-safe. `now` never decreases.
class StreamCutter {
 public:
  /// `positions`: how far it had come before, in any order; `next_step`: minibatches cut so far.
  StreamCutter(StreamCutOptions options, std::span<const StreamPosition> positions,
               uint64_t next_step);

  /// Takes the result of a look. A new topic partition begins at the look's `begin`. If the dataset
  /// is at its end, the partition is not part of it.
  void See(std::span<const PartitionLook> looks, TimePoint now, WallTime wall);

  /// A range, and if retention had deleted its records before they could be cut.
  struct Cut {
    StreamRange range;
    bool lost = false;
  };
  /// The due ranges, at most `ranges_max`; lost ranges are not counted.
  std::vector<Cut> CutDue(uint64_t ranges_max, TimePoint now);

  /// True if the dataset has an end, and everything before it is cut. False while no topic
  /// partition is known.
  bool AtEnd() const;
  /// Topic partitions whose log ends before the cut records, or before the dataset's begin. So the
  /// topic was created again, or the broker has lost records.
  std::vector<TopicPartition> Truncated() const;

  struct Progress {
    StreamPosition position;
    uint64_t log_begin = 0;
    uint64_t stable_end = 0;
    uint64_t log_end = 0;
    /// True if the three above are known: there was a look since the start.
    bool seen = false;
    /// The time of the first offset that is not cut; none: there is none.
    std::optional<WallTime> uncut_seen;
  };
  /// By topic partition.
  std::vector<Progress> ProgressOfAll() const;
  uint64_t next_step() const { return next_step_; }
  /// Topic partitions whose position has changed since the last call.
  std::vector<StreamPosition> TakeChanged();

 private:
  /// The log's end at a certain time.
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
    /// The last look showed every other partition of the topic, but not this one.
    bool missing = false;
    /// Ends beyond the cut, ascending; merged when there are many.
    std::deque<EndSeen> ends_seen;
    bool changed = false;
  };
  /// The end of the records that may be cut now.
  static uint64_t Limit(const Partition& partition);
  std::optional<Cut> CutOne(Partition* partition, TimePoint now);
  Cut Take(Partition* partition, uint64_t end, bool lost);

  StreamCutOptions options_;
  std::map<TopicPartition, Partition> partitions_;
  uint64_t next_step_ = 0;
  /// The partition that is next.
  TopicPartition turn_;
};

}  // namespace muster
