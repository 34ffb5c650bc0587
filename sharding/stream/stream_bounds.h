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

/// What the brokers say of a topic partition.
struct StreamLog {
  TopicPartition partition;
  uint64_t begin = 0;
  uint64_t stable_end = 0;
  /// The high watermark, not less than `stable_end`.
  uint64_t end = 0;
  /// The first offset that is not older than the bound's time, where one is a time; none: every
  /// record is older.
  std::optional<uint64_t> at_start_time, at_end_time;
};

/// A look at a topic in the light of where the dataset begins and ends.
struct StreamBounds {
  const StreamBound& start;
  const StreamBound& end;
  /// Topic partitions that the dataset has already; empty: this is its first look.
  const std::set<TopicPartition>& known;
  /// Wall time since the Unix epoch: an end that is a time is there when it is well over.
  std::chrono::milliseconds now;
  /// The logs' `at_end_time` are an answer: where it has none, no record is so young. Else nobody
  /// asked for them in this look.
  bool end_time_asked = false;
  /// Everything before the dataset's end is cut: what the topic gets now is none of its own.
  bool over = false;
};

/// What the cutter is to see. A topic partition that comes later is read from its oldest record,
/// unless the dataset ends with what was there at first, or is over: then it is none of its own.
/// Pure. kFailedPrecondition: offsets are named for a partition that there is not, or not for one
/// that there is or that was added; an end before the begin. kOutOfRange: a begin beyond the log's
/// end, which may pass, for a leader that was just elected learns where its log ends.
absl::StatusOr<std::vector<PartitionLook>> ResolveStamps(const StreamBounds& bounds,
                                                         std::span<const StreamLog> logs);

}  // namespace muster
