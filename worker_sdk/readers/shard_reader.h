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
#include "kafka/range_reader.h"
#include "proto/messages/worker_control.h"

namespace muster::sdk {

/// The records of one shard, in the order in which every run sees them. Movable; the views stay
/// valid.
struct ShardRecords {
  std::vector<char> bytes;
  /// Views into `bytes`, or into other data that the reader keeps here. Of a file: lines without
  /// their line end ('\n', and a '\r' before it).
  std::vector<std::string_view> records;
  /// records[i] is the order[i]-th record of the shard's range in its file; of a topic: empty.
  std::vector<uint32_t> order;
  /// First line of the file when the dataset has a header; else empty.
  std::string header;
  /// The records of a topic with their other fields; `records` are views into it. Null: the dataset
  /// is no topic.
  std::unique_ptr<kafka::Records> topic;
  /// Where each minibatch begins in `records`, and where the last ends: minibatches + 1 positions.
  std::vector<size_t> minibatches;
};

/// A record that the trainer cannot use.
struct RejectedRecord {
  size_t position = 0;  // in ShardRecords::records
  std::string reason;
};

/// Called repeatedly during a wait, with the problem (empty: none is known). False ends the wait.
using KeepWaiting = std::function<bool(std::string_view trouble)>;

/// Reads the shards of one kind of source. Thread-safe.
class ShardReader {
 public:
  virtual ~ShardReader() = default;

  /// The records of `work`, the same in the same order on every worker, or an error. May wait as
  /// long as `keep_waiting` returns true.
  ///
  /// kFailedPrecondition, kNotFound: the source is not the one of the job, and no retry can help.
  /// kResourceExhausted: this process has no descriptors, memory or disk space left, which is not
  /// the shard's fault and may pass. kCancelled: `keep_waiting` ended the wait. Other errors are
  /// the shard's. All name the place.
  virtual absl::StatusOr<ShardRecords> Read(const ShardWork& work,
                                            const KeepWaiting& keep_waiting) = 0;
  /// What Read waits for, for messages.
  virtual std::string NameOf(const ShardWork& work) const = 0;
  /// Where a record lies, for messages: `position` is the index in ShardRecords::records.
  virtual std::string LocationOf(const ShardWork& work, const ShardRecords& records,
                                 size_t position) const = 0;

  /// True if rejected records of the shard's dataset are written somewhere.
  virtual bool KeepsRejected(const ShardWork&) const { return false; }
  /// Writes rejected records of the shard to their place, and waits until they are stored. They may
  /// be written again if the shard runs again. kUnavailable: this was not possible, but it is not
  /// the shard's fault, or the wait was ended. Requires KeepsRejected(work).
  virtual absl::Status WriteRejected(const ShardWork&, const ShardRecords&,
                                     std::span<const RejectedRecord>, const KeepWaiting&) {
    return absl::OkStatus();
  }
};

}  // namespace muster::sdk
