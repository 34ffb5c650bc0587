#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kafka/internal/client.h"
#include "kafka/internal/topic_records.h"
#include "kafka/range_reader.h"

namespace muster::kafka::internal {

/// True if the records after a range are worth fetching before somebody asks for them: another
/// range as long as this one is in the log, which ends at `high`.
bool WorthReadingAhead(const RangeReader::Range& range, int64_t high);

/// One topic partition of a client that other streams share. It has a queue of its own, so what
/// happens to it does not touch the others. Not thread-safe.
class PartitionStream {
 public:
  struct Options {
    /// Reading ahead stops at this many bytes, and one batch more.
    uint64_t read_ahead_bytes = 0;
    /// So many bytes of records before a range are fetched and dropped. More are skipped: fetching
    /// begins anew, which takes about as long as fetching these.
    uint64_t dropped_bytes_max = uint64_t{4} << 20;
    /// Without any record for this long, the client is doubted.
    std::chrono::milliseconds renew_after{0};
  };
  /// It does not fetch yet.
  PartitionStream(std::shared_ptr<Client> client, std::string topic, uint32_t partition,
                  const Options& options);
  ~PartitionStream() { Stop(); }
  PartitionStream(const PartitionStream&) = delete;
  PartitionStream& operator=(const PartitionStream&) = delete;

  const std::shared_ptr<Client>& client() const { return client_; }
  const std::string& topic() const { return topic_; }
  uint32_t partition() const { return partition_; }
  /// It fetches, and nothing has gone wrong since it began to.
  bool good() const { return good_; }

  /// Makes the first record at or after `offset` the next one, and fetches from there. It does not
  /// wait for brokers. kAborted: the client cannot do that any more.
  absl::Status GoTo(uint64_t offset);
  /// Stops fetching, and drops what was fetched. It does not wait for brokers.
  void Stop();
  /// See RangeReader::Read. kAborted: no record came for `renew_after`, or the client is at its
  /// end, so another client should try.
  absl::StatusOr<std::unique_ptr<Records>> Read(const RangeReader::Range& range,
                                                const RangeReader::KeepWaiting& keep_waiting);
  /// True if it should fetch on after `range` was read.
  bool HasMoreAfter(const RangeReader::Range& range) const;

 private:
  absl::StatusOr<std::unique_ptr<Records>> TryRead(const RangeReader::Range& range,
                                                   const RangeReader::KeepWaiting& keep_waiting);
  std::string NameOf(const RangeReader::Range& range) const;
  absl::Status Restart(uint64_t offset);
  /// True if the records before `offset` were fetched, or are so few that they may be dropped.
  bool IsNear(uint64_t offset) const;
  /// Moves the pending records of the range to `records`. True if the range is complete.
  absl::StatusOr<bool> TakePending(const RangeReader::Range& range, TopicRecords* records);
  /// Takes what is there, or waits a little.
  absl::Status Fetch(const RangeReader::Range& range, const RangeReader::KeepWaiting& keep_waiting);
  absl::Status Wait(const RangeReader::Range& range, const RangeReader::KeepWaiting& keep_waiting);
  absl::Status Take(const RangeReader::Range& range, MessageRef message);
  absl::Status TakeError(const RangeReader::Range& range, const rd_kafka_message_t& message);
  absl::Status TakeGone(const RangeReader::Range& range, const rd_kafka_message_t& message);
  /// Wakes the thread of librdkafka that fetches, and lets it look for the leader.
  void ReadOn();
  bool WantsMore() const;

  const std::shared_ptr<Client> client_;
  const std::string topic_;
  const uint32_t partition_;
  const uint64_t nudge_bytes_;
  const uint64_t dropped_bytes_max_;
  const std::chrono::milliseconds renew_after_;
  TopicRef handle_;
  QueueRef queue_;  // none: it does not fetch
  bool good_ = false;
  uint64_t starts_ = 0;
  /// How often this read was started again because of an error about another offset.
  int doubts_ = 0;
  /// Counted since librdkafka was last told to read on.
  uint64_t taken_bytes_ = 0, taken_records_ = 0;
  /// About the average of the last range.
  uint64_t bytes_per_offset_ = 1;
  int poll_ms_ = 0;
  std::chrono::milliseconds waited_{0}, told_{0};  // since the last record or report
  /// The first offset whose record was not returned yet.
  uint64_t position_ = 0;
  /// Every record before this offset was fetched, or does not exist.
  uint64_t fetched_ = 0;
  /// Records after the range that was read.
  std::deque<MessageRef> pending_;
  /// The error that came after the records of `pending_`, if any.
  absl::Status pending_error_;
  std::string trouble_;
};

}  // namespace muster::kafka::internal
