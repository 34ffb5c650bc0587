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

/// What the shell has seen of the topic of a stream.
struct StreamLook {
  DatasetId dataset;
  /// The id that the brokers' cluster has given itself; empty: not known.
  std::string cluster;
  std::vector<PartitionLook> partitions;
  /// Why it saw nothing; empty: it saw.
  std::string error;
  /// The brokers say that there is no such topic.
  bool gone = false;
  /// The dataset is to begin beyond the end of a log. It saw nothing then; a leader that was just
  /// elected may know the end a little later.
  bool beyond = false;
  /// No other look will say anything else: the job fails with `error`.
  bool fatal = false;
  /// How long the topic keeps records at the least; none: not known, or for ever.
  std::optional<std::chrono::milliseconds> retention;
  /// Why the brokers cannot be told how far the job is; empty: they can.
  std::string group_trouble;
  /// Why rejected records cannot be written to their topic; empty: nothing is known against it.
  std::string dead_letter_trouble;
};

/// What was said of a stream, so that it is said once.
struct StreamTold {
  std::string error;
  std::string group_trouble;
  std::string dead_letter_trouble;
  /// Looks that found no such topic, since one that found it; those without an answer say nothing.
  uint32_t gone_looks = 0;
  TimePoint gone_since;
  /// So many of them, over so long, that it is believed. Until a log is as long as what was cut.
  bool gone = false;
  std::optional<TimePoint> beyond_since;
  std::optional<TimePoint> truncated_since;
  /// Where the logs ended that ended before what was cut: the least that was seen since.
  std::map<TopicPartition, uint64_t> truncated_at;
  /// Topic partitions that retention is near to.
  std::set<TopicPartition> near;
  /// Where their logs began when they were first seen.
  std::map<TopicPartition, uint64_t> log_begins;
  StreamDelays delays;
};

}  // namespace muster
