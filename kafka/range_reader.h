#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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

/// Reads ranges of offsets with one client, however many topics and partitions there are. It joins
/// no consumer group, commits no offsets, and skips none: a missing record is an error.
///
/// Each topic partition has a queue of its own. It is fetched while somebody reads it, and read
/// ahead while that is likely to help. `fetched_max` topic partitions at most are fetched at once,
/// and each has at most `read_ahead_bytes` and one more fetch (by default 1 MiB) in memory, besides
/// the ranges that are being read. Those that nobody uses stop, the longest unused first.
///
/// Thread-safe. Different topic partitions are read at the same time. Ranges of one topic partition
/// are read one after the other.
class RangeReader {
 public:
  struct Options {
    /// The most bytes that are read ahead for a topic partition, and one fetch more.
    uint64_t read_ahead_bytes = uint64_t{2} << 20;
    /// The most topic partitions that are fetched at once. Those that are being read may be more.
    size_t fetched_max = 64;
    /// Records that were read ahead are dropped if nobody reads the topic partition for so long.
    std::chrono::milliseconds unused_max{5'000};
    /// If a read gets no record for so long, a new client takes the place of the old one.
    std::chrono::milliseconds renew_after{60'000};
  };
  static absl::StatusOr<std::unique_ptr<RangeReader>> Open(const ClientConfig& config,
                                                           Options options);
  static absl::StatusOr<std::unique_ptr<RangeReader>> Open(const ClientConfig& config) {
    return Open(config, Options());
  }
  virtual ~RangeReader() = default;

  struct Range {
    std::string topic;
    uint32_t partition = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    /// The most bytes of a record with its key. A larger record is an error.
    uint64_t record_bytes_max = uint64_t{16} << 20;
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
  /// Announces ranges that will be read soon, the first one first. Their records are fetched
  /// together, while others are read. It does not wait, and it reports no errors: Read does. A
  /// range of a topic partition that somebody reads, or that is announced already, is left out.
  virtual void Expect(std::span<const Range> ranges) = 0;
};

}  // namespace muster::kafka
