#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "proto/messages/worker_control.h"
#include "worker_sdk/readers/lines/lru_cache.h"
#include "worker_sdk/readers/shard_reader.h"

namespace muster::sdk {

/// Reads shards from their source files, which must be those that the master indexed. Thread-safe.
/// The files that were read last are kept open. A file is verified once. It is verified again if
/// its size or time of change differs, or if it was forgotten because many other files came after
/// it.
class LinesReader final : public ShardReader {
 public:
  /// How many files are kept open, and how many are remembered as verified.
  static constexpr size_t kOpenFilesMax = 64;
  static constexpr size_t kVerifiedFilesMax = 1 << 16;

  LinesReader();
  ~LinesReader() override;

  /// Never waits. kFailedPrecondition if the file is not the one that was indexed (size, sampled
  /// content, or number of records). Other errors come from the file system. All errors name the
  /// file.
  absl::StatusOr<ShardRecords> Read(const ShardWork& work, const KeepWaiting&) override;
  std::string NameOf(const ShardWork& work) const override;
  /// "path:line".
  std::string LocationOf(const ShardWork& work, const ShardRecords& records,
                         size_t position) const override;

 private:
  struct Source;
  /// The state of a file when its content was last compared with the indexed one.
  struct Verified {
    uint64_t bytes = 0;
    uint64_t hash = 0;
    struct timespec changed{};
    bool Matches(const struct stat& now, const SourceFile& file) const;
  };
  absl::StatusOr<std::shared_ptr<Source>> Open(const SourceFile& file);
  absl::StatusOr<std::shared_ptr<Source>> OpenAnew(const SourceFile& file);
  absl::StatusOr<ShardRecords> ReadRuns(const ShardWork& work);
  /// A descriptor of the file. If the process has none left, it closes the files that are kept
  /// open, and tries again.
  absl::StatusOr<int> Descriptor(const std::string& path);
  absl::Status Verify(const SourceFile& file, Source* source);

  Mutex mutex_;
  LruCache<std::shared_ptr<Source>> open_ MUSTER_GUARDED_BY(mutex_){kOpenFilesMax};
  LruCache<Verified> verified_ MUSTER_GUARDED_BY(mutex_){kVerifiedFilesMax};
};

/// Cuts `bytes`, those of all runs of `work` one after the other, into lines, takes the records of
/// the runs, and puts them into the order of RecordOrder(work.shuffle_seed). kFailedPrecondition: a
/// run has another number of lines than it should. Requires that `work` has no Contradiction().
absl::StatusOr<ShardRecords> CutRecords(const ShardWork& work, std::vector<char> bytes);

}  // namespace muster::sdk
