#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kafka/client_config.h"

namespace muster::kafka {

/// A record of a topic. The views live as long as its Records object.
struct Record {
  std::string_view value;
  std::optional<std::string_view> key;
  /// False if the record has no value, like a deletion in a compacted topic.
  bool has_value = true;
  /// The time since the Unix epoch that the producer or the broker has set. 0 if there is none.
  std::chrono::milliseconds timestamp{0};
  uint64_t offset = 0;
};

/// The committed records of a range, by offset. Movable; the views stay valid. Not thread-safe.
class Records {
 public:
  virtual ~Records() = default;
  const std::vector<Record>& all() const { return records_; }
  /// The headers of all()[index], in order; a value may be missing.
  using Header = std::pair<std::string_view, std::optional<std::string_view>>;
  virtual std::vector<Header> HeadersOf(size_t index) const = 0;

 protected:
  std::vector<Record> records_;
};

/// Reads ranges of offsets. It keeps one consumer for each topic partition that is being read.
/// Consumers read ahead. It joins no consumer group, commits no offsets, and skips none: a missing
/// record is an error.
///
/// Thread-safe: every caller of Read gets a consumer of its own.
class RangeReader {
 public:
  struct Options {
    /// The group name of the readers at the brokers. They do not join the group.
    std::string group;
    /// The most bytes of a record with its key. A larger record is an error.
    uint64_t record_bytes_max = uint64_t{16} << 20;
    /// The most bytes of records that a consumer may read ahead.
    uint64_t read_ahead_bytes = uint64_t{8} << 20;
    /// How many unused consumers are kept.
    size_t idle_max = 16;
  };
  static absl::StatusOr<std::unique_ptr<RangeReader>> Open(const ClientConfig& config,
                                                           Options options);
  virtual ~RangeReader() = default;

  struct Range {
    std::string topic;
    uint32_t partition = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  /// Called ten times a second while Read waits for brokers (at first more often), with the problem
  /// (empty if none is known). Return false to end the wait with kCancelled.
  using KeepWaiting = std::function<bool(std::string_view trouble)>;
  /// Waits until every committed record of the range was read, also while brokers are away, leaders
  /// move, or rights are missing. kOutOfRange: retention has deleted some offsets.
  /// kResourceExhausted: a record is too large. kDataLoss: a record is damaged. kCancelled: the
  /// wait was ended. Messages name topic, partition and offset.
  virtual absl::StatusOr<std::unique_ptr<Records>> Read(const Range& range,
                                                        const KeepWaiting& keep_waiting) = 0;
};

}  // namespace muster::kafka
