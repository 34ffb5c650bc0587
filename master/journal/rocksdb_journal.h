#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "master/journal/journal.h"

namespace rocksdb {
class Env;
}

namespace muster {

/// What a test changes about a journal.
struct JournalStorage {
  /// Where its files are; null: on this machine. Must outlive the journal.
  rocksdb::Env* env = nullptr;
  /// What is kept in memory and in the log before it becomes a table. The folder of a journal needs
  /// at most twelve times as much, and its state (README.md).
  size_t memtable_bytes = 4 << 20;
};

/// Opens the journal in `directory` (creates it if it does not exist), and reads its state.
///
/// A new journal takes `header` with its job_id. An existing journal keeps its own job_id; if its
/// version had none, it takes this one.
///
/// Every Write is one synced batch. Recovery drops at most an unsynced tail: an acknowledged batch
/// is there, or opening fails and changes nothing (docs: README.md beside this file).
///
/// Errors: kUnavailable when another process has it open; kPermissionDenied and kResourceExhausted
/// (disk full) name the directory; kDataLoss when it is damaged; kFailedPrecondition when it is
/// another job's (see CheckHeader).
absl::StatusOr<std::unique_ptr<Journal>> OpenRocksdbJournal(const std::string& directory,
                                                            const JournalHeader& header,
                                                            const JournalStorage& storage = {});

/// What a journal holds.
struct StoredJournal {
  JournalHeader header;
  DurableState state;
};
/// Reads the journal in `directory` for questions about a job that does not run. Takes no lock, and
/// changes and adds no file. kNotFound if there is no journal; otherwise the errors of
/// OpenRocksdbJournal. If a master writes the journal meanwhile, it shows the state of some
/// instant.
absl::StatusOr<StoredJournal> ReadRocksdbJournal(const std::string& directory);

/// Only the header. This is fast for large journals, too, because it does not check the rest.
absl::StatusOr<JournalHeader> ReadRocksdbHeader(const std::string& directory);

/// Writes all records of the journal in `from`, which it only reads, to a new journal in `to`, and
/// syncs them. A master may still write to `from`: the copy has everything that was synced before.
/// kNotFound if there is no journal; otherwise the errors of ReadRocksdbJournal. `storage` is that
/// of both.
absl::Status CopyRocksdbJournal(const std::string& from, const std::string& to,
                                const JournalStorage& storage = {});

/// Whether a process, this one too, has the journal in `directory` open. Another machine's lock is
/// seen only if the file system carries locks between machines.
absl::StatusOr<bool> IsRocksdbLocked(const std::string& directory);

}  // namespace muster
