#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "job/source_spec.h"
#include "sharding/stream/stream_types.h"

namespace muster {

/// The brokers' figures of a topic partition.
struct StreamLog {
  TopicPartition partition;
  uint64_t begin = 0;
  uint64_t stable_end = 0;
  /// The high watermark, not less than `stable_end`.
  uint64_t end = 0;
  /// If a bound is a time: the first offset that is not older; none: every record is older.
  std::optional<uint64_t> at_start_time, at_end_time;
};

/// A look at a topic, together with the dataset's bounds.
struct StreamBounds {
  const StreamBound& start;
  const StreamBound& end;
  /// Topic partitions that the dataset already has; empty: this is its first look.
  const std::set<TopicPartition>& known;
  /// Wall time since the Unix epoch. An end that is a time is reached when the time is well over.
  std::chrono::milliseconds now;
  /// The logs' `at_end_time` were requested in this look. If one is none, its partition has no
  /// record that young.
  bool end_time_asked = false;
  /// Everything before the dataset's end is cut. So later records of the topic are not part of the
  /// dataset.
  bool over = false;
};

/// What the cutter gets. A topic partition that is added later is read from its oldest record. But
/// if the dataset ends with the first look, or is over, the partition is not part of it. Pure.
/// kFailedPrecondition: the offsets name a missing partition, lack an existing or added one, or an
/// end is before its begin. kOutOfRange: a begin is beyond the log's end. That may pass, because a
/// newly elected leader may not know the end of its log yet.
absl::StatusOr<std::vector<PartitionLook>> ResolveStamps(const StreamBounds& bounds,
                                                         std::span<const StreamLog> logs);

}  // namespace muster
