#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/words/parts.h"
#include "proto/messages/worker_control.h"
#include "worker_sdk/readers/topic_records.h"

namespace muster::sdk {

/// The records of one shard, in the order in which every run sees them. Movable; the views stay
/// valid.
struct ShardRecords {
  std::vector<char> bytes;
  /// Views into `bytes`, or into other data that the reader keeps here. For a file, they are lines
  /// without their line end ('\n', and a '\r' before it). Of record numbers, each is empty.
  std::vector<std::string_view> records;
  /// The numbers of the records, if they are no more than that; empty for other kinds.
  std::vector<int64_t> numbers;
  /// For a file, records[i] is the order[i]-th record of the shard's range. Empty for other kinds.
  std::vector<uint32_t> order;
  /// The first line of the file if the dataset has a header, otherwise empty.
  std::string header;
  /// The records of a topic with their other fields. `records` are views into it. Null if the
  /// dataset is not a topic.
  std::unique_ptr<TopicRecords> topic;
  /// The positions in `records` where each minibatch begins and the last one ends. There are
  /// minibatches + 1 positions.
  std::vector<size_t> minibatches;
};

/// ShardRecords::minibatches of a shard that has all of `work.record_count` records.
inline std::vector<size_t> EqualMinibatches(const ShardWork& work) {
  std::vector<size_t> begins;
  for (uint32_t k = 0; k <= work.minibatch_count; ++k) {
    begins.push_back(BeginOfPart(k, work.minibatch_count, work.record_count));
  }
  return begins;
}

/// A record that the trainer cannot use.
struct RejectedRecord {
  size_t position = 0;  // in ShardRecords::records
  std::string reason;
};

/// Called repeatedly during a wait, with the problem (empty if none is known). Return false to end
/// the wait.
using KeepWaiting = std::function<bool(std::string_view trouble)>;

/// Reads the shards of one kind of source. Thread-safe.
class ShardReader {
 public:
  virtual ~ShardReader() = default;

  /// The records of `work`, or an error. All workers get the same records in the same order. May
  /// wait as long as `keep_waiting` returns true.
  ///
  /// Errors: kFailedPrecondition and kNotFound if the source is not the one of the job, so that no
  /// retry can help. kResourceExhausted if this process has no descriptors, memory or disk space
  /// left, which is not the shard's fault and may pass. kCancelled if `keep_waiting` ended the
  /// wait. Other errors are the shard's. All errors name the place.
  virtual absl::StatusOr<ShardRecords> Read(const ShardWork& work,
                                            const KeepWaiting& keep_waiting) = 0;
  /// Announces shards that this process will probably read soon, the first one first. A reader may
  /// begin to fetch them. It does not wait.
  virtual void Expect(std::span<const ShardWork>) {}
  /// A name of what Read waits for, for messages.
  virtual std::string NameOf(const ShardWork& work) const = 0;
  /// The place of a record, for messages. `position` is the index in ShardRecords::records.
  virtual std::string LocationOf(const ShardWork& work, const ShardRecords& records,
                                 size_t position) const = 0;

  /// True if rejected records of the shard's dataset are stored somewhere.
  virtual bool KeepsRejected(const ShardWork&) const { return false; }
  /// Writes rejected records of the shard to their place, and waits until they are stored. If the
  /// shard runs again, they may be written again. kUnavailable if this was not possible without a
  /// fault of the shard, or if the wait was ended. Requires KeepsRejected(work).
  virtual absl::Status WriteRejected(const ShardWork&, const ShardRecords&,
                                     std::span<const RejectedRecord>, const KeepWaiting&) {
    return absl::OkStatus();
  }
};

}  // namespace muster::sdk
