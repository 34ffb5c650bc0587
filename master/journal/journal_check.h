#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Internal to master/journal: checks that a journal's files contain everything acknowledged.
///
/// RocksDB's checksums find changes, but not missing data: a log or a manifest that was cut off at
/// its end looks like one that never had more. So every batch carries its number, 1, 2, 3 and so
/// on, and must follow the batch before it.
namespace muster {

inline constexpr char kBatchKey[] = "b";

/// Puts the number of a batch into it; to be called first.
rocksdb::Status PutBatchNumber(uint64_t number, rocksdb::WriteBatch* batch);

struct JournalExtent {
  /// Number of the newest batch in the journal's files, 0 when there is none.
  uint64_t newest_batch = 0;
  /// Number of the newest batch in the tables; logs may begin earlier.
  uint64_t newest_in_tables = 0;
  /// The mode in which RocksDB must read the logs to find all batches and nothing else.
  rocksdb::WALRecoveryMode recovery = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
};
/// Changes no file. `acknowledged` is the number of AcknowledgedMark. kDataLoss names the file if a
/// batch is missing in the middle, or one of the first `acknowledged`. Requires: no master is
/// writing, because otherwise it may report a gap that does not exist.
absl::StatusOr<JournalExtent> FindExtent(const std::string& directory,
                                         const rocksdb::Options& options,
                                         std::optional<uint64_t> acknowledged);

struct ReadableJournal {
  std::unique_ptr<rocksdb::WalFilter> filter;  // RocksDB keeps a plain pointer to it
  std::unique_ptr<rocksdb::DB> db;
};
/// Opens a journal for reading, and checks that it has all batches of `extent`. kDataLoss if it
/// changed so much since then that it must be looked at again: RocksDB reads the MANIFEST before it
/// lists the logs, so it misses a log that became a table meanwhile.
absl::StatusOr<ReadableJournal> OpenReadable(const std::string& directory,
                                             const rocksdb::Options& options,
                                             const JournalExtent& extent);

/// kDataLoss if there are files of a journal, but CURRENT or the MANIFEST that it names is missing.
/// Without CURRENT, RocksDB would begin a new journal in their place.
absl::Status CheckNotBeheaded(const std::string& directory, rocksdb::Env* env,
                              std::optional<uint64_t> acknowledged);

}  // namespace muster
