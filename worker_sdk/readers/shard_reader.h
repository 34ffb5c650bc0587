#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kafka/range_reader.h"
#include "proto/messages/control.h"
#include "worker_sdk/readers/lru_cache.h"

namespace muster::sdk {

/// The records of one shard, in the order in which every run sees them. Movable; the views stay
/// valid.
struct ShardRecords {
  std::vector<char> bytes;
  /// Lines without their line end ('\n', and a '\r' before it); views into `bytes`.
  std::vector<std::string_view> records;
  /// records[i] is the order[i]-th record of the shard's range in the file.
  std::vector<uint32_t> order;
  /// First line of the file when the dataset has a header; else empty.
  std::string header;
  /// What the records of a topic have besides their values, which are views into it; then there are
  /// neither `bytes` nor `order`. Null: a file.
  std::unique_ptr<kafka::Records> topic;
  /// Where each minibatch begins in `records`, and where the last ends: minibatches + 1 positions.
  std::vector<size_t> minibatches;
};

/// Reads shards from their source files, which must be what the master indexed. Thread-safe. The
/// files that were read last are kept open; a file is verified once, and again when its size or
/// time of change differs, or when so many others came between that it was forgotten.
class ShardReader {
 public:
  /// Files kept open, and files remembered as verified.
  static constexpr size_t kOpenFilesMax = 64;
  static constexpr size_t kVerifiedFilesMax = 1 << 16;

  ShardReader();
  ~ShardReader();

  /// Reads the records of `work`. kFailedPrecondition: the file is not the one that was indexed
  /// (size, sampled content, or number of records), and no retry can help; kNotFound likewise.
  /// kResourceExhausted: there are no descriptors, no memory or no disk left, which is nobody's
  /// fault and may pass. Other errors are the file system's. All name the file.
  absl::StatusOr<ShardRecords> Read(const ShardWork& work);

  /// "path:line" of a record, for messages: `position` is the index in ShardRecords::records.
  static std::string LocationOf(const ShardWork& work, const ShardRecords& records,
                                size_t position);

 private:
  struct Source;
  /// A file's state when its content was compared with the pin.
  struct Verified {
    uint64_t bytes = 0;
    uint64_t hash = 0;
    struct timespec changed{};
    bool Matches(const struct stat& now, const ShardWork& work) const;
  };
  absl::StatusOr<std::shared_ptr<Source>> Open(const ShardWork& work);
  absl::StatusOr<std::shared_ptr<Source>> OpenAnew(const ShardWork& work);
  absl::StatusOr<ShardRecords> ReadRange(const ShardWork& work);
  /// The descriptor. Without one left, the files kept open are closed first.
  absl::StatusOr<int> Descriptor(const std::string& path);
  absl::Status Verify(const ShardWork& work, Source* source);

  Mutex mutex_;
  LruCache<std::shared_ptr<Source>> open_ MUSTER_GUARDED_BY(mutex_){kOpenFilesMax};
  LruCache<Verified> verified_ MUSTER_GUARDED_BY(mutex_){kVerifiedFilesMax};
};

/// Cuts `bytes` into lines and puts them into the order of RecordOrder(work.shuffle_seed).
/// kFailedPrecondition when their number is not work.record_count.
absl::StatusOr<ShardRecords> CutRecords(const ShardWork& work, std::vector<char> bytes);

}  // namespace muster::sdk
