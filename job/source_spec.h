#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster {

/// A dataset that is files of lines: a record is a line. All of it is there when the job begins.
struct LinesSpec {
  /// Glob patterns as written.
  std::vector<std::string> files;
  /// The first line of each file is no record.
  bool header = false;
};

/// Where a stream begins, or ends, in every partition of its topic.
struct StreamBound {
  enum class Kind : uint8_t {
    kEarliest,  // begin: at the oldest record
    kLatest,    // begin: with what comes after the job's start
    kNever,     // end
    kNow,       // end: with what was there at the job's start
    kTime,      // at the first record that is not older than `time`
    kOffsets,   // at `offsets`
  };
  Kind kind = Kind::kEarliest;
  std::chrono::milliseconds time{0};     // since the Unix epoch
  std::map<uint32_t, uint64_t> offsets;  // by partition of the topic
  friend bool operator==(const StreamBound&, const StreamBound&) = default;
};
/// As a job file says it; times in UTC.
std::string ToString(const StreamBound& bound);

/// A dataset that is a topic: it grows while the job runs. docs/kafka.md.
struct TopicSpec {
  /// host:port of some brokers of the cluster.
  std::vector<std::string> brokers;
  std::string topic;
  StreamBound start{.kind = StreamBound::Kind::kEarliest, .time = {}, .offsets = {}};
  StreamBound end{.kind = StreamBound::Kind::kNever, .time = {}, .offsets = {}};
  std::chrono::milliseconds max_delay{1'000};
  uint64_t open_ranges_max = 1'024;
  uint64_t record_bytes_max = uint64_t{16} << 20;
  /// Rejected records are produced to it; empty: they are only counted.
  std::string dead_letter_topic;
  /// Of librdkafka, as written.
  std::map<std::string, std::string> properties;
  /// Likewise, but where each value is to be found: "env:NAME" or "file:/absolute/path".
  std::map<std::string, std::string> secrets;
};

/// Where the records of a dataset come from: one alternative a kind.
using SourceSpec = std::variant<LinesSpec, TopicSpec>;

/// Whether each part of the source begins with a line that is no record.
bool HasHeader(const SourceSpec& source);
/// The source's own fields that may not change on resume, below the dataset's, each with its value
/// as text, in a fixed order. `header` is not among them: every dataset has it.
std::vector<std::pair<std::string, std::string>> FixedFields(const SourceSpec& source);

}  // namespace muster
