#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Internal to master/journal.
namespace muster {

/// The number of the newest acknowledged batch, in a small file beside the journal. It
/// distinguishes a log that was cut off from a log whose last record was never synced.
///
/// It is written after a batch is on disk and not synced itself, so it never says more than the
/// journal holds. After the death of a process it is exact; after a power loss it may be older by
/// what the kernel had not yet written back. Not thread-safe.
class AcknowledgedMark {
 public:
  static std::string PathIn(const std::string& directory) { return directory + "/ACKNOWLEDGED"; }

  /// None if there is no file: the journal is new, or its version kept no count. 0: nothing was
  /// acknowledged yet. kDataLoss if the file is damaged.
  static absl::StatusOr<std::optional<uint64_t>> Read(rocksdb::Env* env,
                                                      const std::string& directory);

  /// Opens the file (creates it if it is missing), writes that `batch` is acknowledged, and syncs
  /// it.
  static absl::StatusOr<std::unique_ptr<AcknowledgedMark>> Open(rocksdb::Env* env,
                                                                const std::string& directory,
                                                                uint64_t batch);
  /// Writes to the kernel, without a sync.
  absl::Status Write(uint64_t batch);
  absl::Status Sync();

 private:
  AcknowledgedMark(std::string directory, std::unique_ptr<rocksdb::RandomRWFile> file)
      : directory_(std::move(directory)), file_(std::move(file)) {}

  const std::string directory_;
  const std::unique_ptr<rocksdb::RandomRWFile> file_;
};

}  // namespace muster
