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
  /// Records that do not fill a shard are cut when the first of them has waited this long.
  std::chrono::nanoseconds max_delay{std::chrono::seconds(1)};
};

/// Cuts a stream into shards while it grows. A shard that one topic partition fills is cut at once,
/// one partition after the other in turn. Other records are cut when they are due, which is after a
/// delay or at the dataset's end: as many whole minibatches, of records of all partitions, as hold
/// all that is due. Records that are not due fill the last of them. If there are too few of those,
/// the minibatches have fewer records, in equal parts. In each topic partition the ranges are
/// contiguous, from the dataset's begin there.
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

  /// A shard, and if retention had deleted its records before they could be cut.
  struct Cut {
    StreamShard shard;
    bool lost = false;
  };
  /// The shards that are full or due, at most `shards_max`; lost ones are not counted.
  std::vector<Cut> CutDue(uint64_t shards_max, TimePoint now);

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
  /// A partition of which something is taken next.
  struct Waiting {
    Partition* partition = nullptr;
    uint64_t due = 0;  // offsets
    uint64_t all = 0;  // offsets, `due` among them
  };
  uint64_t ShardOffsets() const;
  /// What is lost or full in one partition.
  std::optional<Cut> CutOne(Partition* partition);
  /// Shards of what is due, at most `shards_max`. Requires that no partition has what CutOne()
  /// cuts.
  std::vector<Cut> CutAcross(uint64_t shards_max, TimePoint now);
  /// The partitions that wait longest, at most as many as a shard may have.
  std::vector<Waiting> LongestWaiting(TimePoint now);
  /// All partitions are at the dataset's end.
  bool SeesTheEnd() const;
  /// Takes [position.cut, end) of a partition for a shard.
  void Take(Partition* partition, uint64_t end, StreamShard* shard);
  /// Gives a shard its place among the minibatches.
  Cut Number(StreamShard shard, bool lost);

  StreamCutOptions options_;
  std::map<TopicPartition, Partition> partitions_;
  uint64_t next_step_ = 0;
  /// The partition that is next.
  TopicPartition turn_;
};

}  // namespace muster
