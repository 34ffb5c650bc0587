#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "master/journal/rocksdb_journal.h"
#include "tests/master/journal/sample_records.h"
#include "tests/support/power_loss/memory_file_system.h"

namespace muster::testing {

inline constexpr char kJournalFolder[] = "/journal";
/// The least that RocksDB takes: a table after every few batches.
inline constexpr size_t kSmallMemtable = 64 << 10;

/// A machine with a disk in memory and a journal on it.
class JournalMachine {
 public:
  explicit JournalMachine(DiskModel disk)
      : files_(std::make_shared<MemoryFileSystem>(WithFolder(std::move(disk)))),
        env_(rocksdb::NewCompositeEnv(files_)) {}

  absl::StatusOr<std::unique_ptr<Journal>> Open() {
    return OpenRocksdbJournal(kJournalFolder, {"job", {}, {}, "id"},
                              {.env = env_.get(), .memtable_bytes = kSmallMemtable});
  }
  MemoryFileSystem& files() { return *files_; }
  rocksdb::Env* env() { return env_.get(); }

 private:
  /// As MakeDirectories leaves it.
  static DiskModel WithFolder(DiskModel disk) {
    disk.MakeFolder(kJournalFolder);
    disk.SyncFolder("/");
    return disk;
  }

  std::shared_ptr<MemoryFileSystem> files_;
  std::unique_ptr<rocksdb::Env> env_;
};

/// Batch `i` of a series in which each replaces, adds and deletes, and has `bytes` of text.
inline std::vector<Mutation> SampleBatch(uint64_t i, size_t bytes) {
  MetaRecord meta;
  meta.done_seq = DoneSeq(i);
  const DoneRecord done{{DoneSeq(i), SampleShard(i), LeaseToken(MasterIncarnation(1), i)}, "w", {}};
  std::vector<Mutation> batch{meta, done,
                              EventRecord{i, {}, "kind", "node", std::string(bytes, 'x')}};
  if (i % 5 == 0) batch.push_back(EraseDone{DoneSeq(i - 4), DoneSeq(i - 2)});
  if (i % 7 == 0) batch.push_back(EraseEvents{i - 3});
  return batch;
}

}  // namespace muster::testing
