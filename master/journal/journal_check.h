#pragma once

#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Internal to master/journal: whether a journal's files hold everything that was acknowledged.
///
/// RocksDB's checksums find what was changed. They do not find what is missing: a log or a manifest
/// that was cut off at its end reads like one that never had more. So every batch carries its
/// number, 1, 2, 3 and so on, and must follow on the one before it.
namespace muster {

inline constexpr char kBatchKey[] = "b";

/// Puts the number of a batch into it; to be called first.
rocksdb::Status PutBatchNumber(uint64_t number, rocksdb::WriteBatch* batch);

struct JournalExtent {
  /// Number of the newest batch in the journal's files, 0 when there is none.
  uint64_t newest_batch = 0;
  /// How RocksDB is to read the logs so that it finds all of them and nothing else.
  rocksdb::WALRecoveryMode recovery = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
};
/// Changes no file. `acknowledged` is what AcknowledgedMark says. kDataLoss, naming the file, when
/// a batch is missing in the middle, or one of the first `acknowledged`. Requires: no master is
/// writing, else a gap may be seen that is none.
absl::StatusOr<JournalExtent> FindExtent(const std::string& directory,
                                         const rocksdb::Options& options,
                                         std::optional<uint64_t> acknowledged);

/// kDataLoss when there are files of a journal but not the two by which they are found, CURRENT and
/// the MANIFEST that it names: without CURRENT RocksDB would begin a new one in their place.
absl::Status CheckNotBeheaded(const std::string& directory, rocksdb::Env* env,
                              std::optional<uint64_t> acknowledged);

}  // namespace muster
