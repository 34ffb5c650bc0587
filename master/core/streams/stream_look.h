#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/words/types.h"
#include "master/core/streams/stream_delays.h"
#include "sharding/stream/stream_types.h"

namespace muster {

/// One look of the shell at the topic of a stream.
struct StreamLook {
  DatasetId dataset;
  /// The id of the brokers' cluster; empty: not known.
  std::string cluster;
  std::vector<PartitionLook> partitions;
  /// Why the look failed; empty if it succeeded.
  std::string error;
  /// The brokers say that there is no such topic.
  bool gone = false;
  /// The dataset should begin beyond the end of a log, so the look failed. A leader that was just
  /// elected may know the end a little later.
  bool beyond = false;
  /// No later look can succeed: the job fails with `error`.
  bool fatal = false;
  /// The shortest time for which the topic keeps records; none: not known, or no limit.
  std::optional<std::chrono::milliseconds> retention;
  /// Why offsets cannot be committed to the brokers; empty if they can.
  std::string group_trouble;
  /// Why rejected records cannot be written to their topic; empty if no problem is known.
  std::string dead_letter_trouble;
};

/// What was reported about a stream, so that each event is reported once.
struct StreamTold {
  std::string error;
  std::string group_trouble;
  std::string dead_letter_trouble;
  /// Looks that did not find the topic since one that did. Looks without an answer do not count.
  uint32_t gone_looks = 0;
  TimePoint gone_since;
  /// True after enough such looks over enough time, until the logs reach the offsets cut so far.
  bool gone = false;
  std::optional<TimePoint> beyond_since;
  std::optional<TimePoint> truncated_since;
  /// For logs that end before an offset that was cut: the smallest end seen since.
  std::map<TopicPartition, uint64_t> truncated_at;
  /// Topic partitions that retention is near to.
  std::set<TopicPartition> near;
  /// Where their logs began when they were first seen.
  std::map<TopicPartition, uint64_t> log_begins;
  StreamDelays delays;
};

}  // namespace muster
