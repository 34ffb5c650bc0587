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
  /// Views into `bytes`, or into what else the reader keeps here. Of a file: lines without their
  /// line end ('\n', and a '\r' before it).
  std::vector<std::string_view> records;
  /// records[i] is the order[i]-th record of the shard's range in its file; of a topic: empty.
  std::vector<uint32_t> order;
  /// First line of the file when the dataset has a header; else empty.
  std::string header;
  /// What the records of a topic have besides their values, which are views into it. Null: they are
  /// of no topic.
  std::unique_ptr<kafka::Records> topic;
  /// Where each minibatch begins in `records`, and where the last ends: minibatches + 1 positions.
  std::vector<size_t> minibatches;
};

/// A record that the trainer cannot use.
struct RejectedRecord {
  size_t position = 0;  // in ShardRecords::records
  std::string reason;
};

/// Asked again and again while something is waited for, with what is wrong (empty: nothing that is
/// known); false ends the waiting.
using KeepWaiting = std::function<bool(std::string_view trouble)>;

/// Reads the shards of one kind of source. Thread-safe.
class ShardReader {
 public:
  virtual ~ShardReader() = default;

  /// The records of `work`: the same in the same order, whoever reads them, or an error. May wait
  /// as long as `keep_waiting` says.
  ///
  /// kFailedPrecondition, kNotFound: the source is not the one of the job, and no retry can help.
  /// kResourceExhausted: this process has no descriptors, no memory or no disk left, which is
  /// nobody's fault and may pass. kCancelled: nobody waits any more. Other errors are the shard's.
  /// All name the place.
  virtual absl::StatusOr<ShardRecords> Read(const ShardWork& work,
                                            const KeepWaiting& keep_waiting) = 0;
  /// What Read reads, for who waits for it.
  virtual std::string NameOf(const ShardWork& work) const = 0;
  /// Where a record lies, for messages: `position` is the index in ShardRecords::records.
  virtual std::string LocationOf(const ShardWork& work, const ShardRecords& records,
                                 size_t position) const = 0;

  /// Whether rejected records of the shard's dataset are written anywhere.
  virtual bool KeepsRejected(const ShardWork&) const { return false; }
  /// Writes rejected records of the shard where they belong, and waits until they are there.
  /// They may be written again when the shard is run again. kUnavailable: that was not possible,
  /// through no fault of the shard, or nobody waits any more. Requires KeepsRejected(work).
  virtual absl::Status WriteRejected(const ShardWork&, const ShardRecords&,
                                     std::span<const RejectedRecord>, const KeepWaiting&) {
    return absl::OkStatus();
  }
};

}  // namespace muster::sdk
