#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster {

/// A dataset of files. Each line is a record. All files are complete when the job begins.
struct LinesSpec {
  /// Glob patterns, unchanged.
  std::vector<std::string> files;
  /// If true, the first line of each file is not a record.
  bool header = false;
};

/// Where a stream begins or ends, in every partition of its topic.
struct StreamBound {
  enum class Kind : uint8_t {
    kEarliest,  // begin: at the oldest record
    kLatest,    // begin: with what comes after the job's start
    kNever,     // end
    kNow,       // end: with what exists at the job's start
    kTime,      // at the first record that is not older than `time`
    kOffsets,   // at `offsets`
  };
  Kind kind = Kind::kEarliest;
  std::chrono::milliseconds time{0};     // since the Unix epoch
  std::map<uint32_t, uint64_t> offsets;  // by partition of the topic
  friend bool operator==(const StreamBound&, const StreamBound&) = default;
};
/// The bound as in a job file. Times are in UTC.
std::string ToString(const StreamBound& bound);

/// A dataset that is a topic and grows while the job runs. See docs/kafka.md.
struct TopicSpec {
  /// Some brokers of the cluster, as host:port.
  std::vector<std::string> brokers;
  std::string topic;
  StreamBound start{.kind = StreamBound::Kind::kEarliest, .time = {}, .offsets = {}};
  StreamBound end{.kind = StreamBound::Kind::kNever, .time = {}, .offsets = {}};
  std::chrono::milliseconds max_delay{1'000};
  uint64_t open_ranges_max = 1'024;
  uint64_t record_bytes_max = uint64_t{16} << 20;
  /// The topic to which rejected records are written. If empty, they are only counted.
  std::string dead_letter_topic;
  /// Settings for librdkafka, unchanged.
  std::map<std::string, std::string> properties;
  /// Further settings, with the places of their values: "env:NAME" or "file:/absolute/path".
  std::map<std::string, std::string> secrets;
};

/// A dataset of record numbers, without data: the trainer knows what the numbers stand for.
struct RangeSpec {
  static constexpr uint64_t kRecordsMax = 1'000'000'000'000;
  /// The numbers are 0 to records - 1.
  uint64_t records = 0;
};

/// The source of a dataset's records, with one alternative for each kind.
using SourceSpec = std::variant<LinesSpec, TopicSpec, RangeSpec>;

/// True if each part of the source begins with a line that is not a record.
bool HasHeader(const SourceSpec& source);
/// The fields of the source that may not change on resume, below the dataset's fields. Each has its
/// value as text, in a fixed order. `header` is not among them, because every dataset has it.
std::vector<std::pair<std::string, std::string>> FixedFields(const SourceSpec& source);

}  // namespace muster
