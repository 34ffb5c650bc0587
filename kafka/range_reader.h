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

/// A record of a topic. The views live as long as its Records.
struct Record {
  std::string_view value;
  std::optional<std::string_view> key;
  /// False: the record has no value, like a deletion in a compacted topic.
  bool has_value = true;
  /// Since the Unix epoch, as the producer or the broker has set it; 0: it has none.
  std::chrono::milliseconds timestamp{0};
  uint64_t offset = 0;
};

/// The committed records of a range, by offset. Movable; views stay valid. Not thread-safe.
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

/// Reads ranges of offsets. It keeps one consumer for each topic partition that is read at the same
/// time; consumers read ahead. It joins no consumer group, commits no offset, and skips no offset:
/// a missing record is an error.
///
/// Thread-safe: every caller of Read gets a consumer of its own.
class RangeReader {
 public:
  struct Options {
    /// The group name of the readers at the brokers. They do not join the group.
    std::string group;
    /// Of a record with its key; a larger one is an error.
    uint64_t record_bytes_max = uint64_t{16} << 20;
    /// Most bytes of records that a consumer may read ahead.
    uint64_t read_ahead_bytes = uint64_t{8} << 20;
    /// Unused consumers to keep.
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
  /// (empty: none is known). False ends the wait with kCancelled.
  using KeepWaiting = std::function<bool(std::string_view trouble)>;
  /// Waits until every committed record of the range was read, also while brokers are away, leaders
  /// move, or rights are missing. kOutOfRange: retention has deleted offsets of it;
  /// kResourceExhausted: a record is too large; kDataLoss: a record is damaged; kCancelled.
  /// Messages name topic, partition and offset.
  virtual absl::StatusOr<std::unique_ptr<Records>> Read(const Range& range,
                                                        const KeepWaiting& keep_waiting) = 0;
};

}  // namespace muster::kafka
