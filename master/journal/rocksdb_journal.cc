#include "master/journal/rocksdb_journal.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <cstdarg>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "master/journal/acknowledged_mark.h"
#include "master/journal/journal_check.h"
#include "master/journal/record_codec.h"
#include "master/journal/rocksdb_status.h"

namespace muster {
namespace {

constexpr size_t kCacheBytes = 8 << 20;
/// The disk space that opening a journal and the first batches may need.
constexpr size_t kRoomBytes = 1 << 20;

/// A master that writes meanwhile can delete a file between two reads of the folder.
constexpr int kReadTriesMax = 3;

/// A batch of a copy.
constexpr size_t kCopyBytes = 1 << 20;

/// RocksDB aborts if the disk fills up while it opens, so the free space is checked before.
absl::Status CheckRoom(const std::string& directory) {
  const std::string probe = directory + "/room.probe";
  const absl::Status status = WriteFileAtomically(probe, std::string(kRoomBytes, '\0'));
  ::unlink(probe.c_str());
  if (!absl::IsResourceExhausted(status)) return status;
  return DiskFull(fmt::format("the journal {}: {}", directory, Message(status)));
}

/// RocksDB's info log is turned off, because a read must not create files.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::Options JournalOptions(const JournalStorage& storage) {
  rocksdb::Options options;
  if (storage.env != nullptr) {
    options.env = storage.env;
    options.info_log = std::make_shared<NoLog>();
  }
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // Only a torn record at the very end of the log is dropped. It was never synced, so never
  // answered (unless FindExtent says otherwise).
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.manual_wal_flush = false;
  options.write_buffer_size = storage.memtable_bytes;
  options.max_write_buffer_number = 2;
  options.max_total_wal_size = 4 * storage.memtable_bytes;
  options.max_background_jobs = 2;
  options.max_open_files = 64;
  options.keep_log_file_num = 2;
  options.max_log_file_size = 1 << 20;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.stats_dump_period_sec = 0;
  options.compression = rocksdb::kNoCompression;
  options.avoid_flush_during_shutdown = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kCacheBytes);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Options ForReading(const rocksdb::Options& options) {
  rocksdb::Options reading = options;
  reading.create_if_missing = false;
  reading.info_log = std::make_shared<NoLog>();
  return reading;
}

absl::StatusOr<std::optional<JournalHeader>> ReadHeader(rocksdb::DB* db,
                                                        const std::string& directory) {
  std::string value;
  const rocksdb::Status found =
      db->Get({}, rocksdb::Slice(kHeaderKey.data(), kHeaderKey.size()), &value);
  if (found.IsNotFound()) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(JournalStatus(found, directory));
  absl::StatusOr<JournalHeader> header = DecodeHeader(value);
  if (!header.ok()) return Annotate(header.status(), directory);
  return *std::move(header);
}

absl::StatusOr<DurableState> ReadState(rocksdb::DB* db, const std::string& directory) {
  DurableState state;
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string_view key(it->key().data(), it->key().size());
    if (key == kHeaderKey || key == kBatchKey) continue;
    MUSTER_ASSIGN_OR_RETURN(const Mutation mutation,
                            Decode(key, {it->value().data(), it->value().size()}));
    Apply(mutation, &state);
  }
  MUSTER_RETURN_IF_ERROR(JournalStatus(it->status(), directory));
  return state;
}

class RocksdbJournal final : public Journal {
 public:
  RocksdbJournal(std::string directory, std::unique_ptr<rocksdb::DB> db, uint64_t newest_batch,
                 std::unique_ptr<AcknowledgedMark> mark)
      : directory_(std::move(directory)),
        db_(std::move(db)),
        newest_batch_(newest_batch),
        mark_(std::move(mark)) {}
  ~RocksdbJournal() override {
    static_cast<void>(mark_->Sync());
    // After a failed write, RocksDB aborts when it is closed. So it stays open until the process
    // ends.
    if (failed_) static_cast<void>(db_.release());
  }

  absl::Status Load(const JournalHeader& header) {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<JournalHeader> known,
                            ReadHeader(db_.get(), directory_));
    job_id_ = header.job_id;
    if (!known.has_value()) {
      MUSTER_RETURN_IF_ERROR(CheckEmpty());
      MUSTER_FAILPOINT_OR_RETURN("journal.before-header");
      return WriteHeader(header);
    }
    MUSTER_RETURN_IF_ERROR(CheckHeader(*known, header, directory_));
    if (known->job_id.empty()) {
      MUSTER_RETURN_IF_ERROR(WriteHeader(header));
    } else {
      job_id_ = known->job_id;
    }
    MUSTER_ASSIGN_OR_RETURN(state_, ReadState(db_.get(), directory_));
    return absl::OkStatus();
  }

  const std::string& job_id() const override { return job_id_; }
  DurableState TakeState() override { return std::move(state_); }

  absl::Status Write(std::span<const Mutation> mutations) override {
    rocksdb::WriteBatch batch;
    MUSTER_RETURN_IF_ERROR(JournalStatus(PutBatchNumber(newest_batch_ + 1, &batch), directory_));
    for (const Mutation& mutation : mutations) {
      StoreChange change = Encode(mutation);
      const rocksdb::Status added = change.value.has_value() ? batch.Put(change.key, *change.value)
                                    : change.end.empty()
                                        ? batch.Delete(change.key)
                                        : batch.DeleteRange(change.key, change.end);
      MUSTER_RETURN_IF_ERROR(JournalStatus(added, directory_));
    }
    absl::Status status = MUSTER_FAILPOINT_STATUS("journal.before-write");
    if (status.ok()) status = Put(&batch);
    if (status.ok()) status = MUSTER_FAILPOINT_STATUS("journal.before-mark");
    if (status.ok()) status = mark_->Write(++newest_batch_);
    if (status.ok()) status = MUSTER_FAILPOINT_STATUS("journal.after-write");
    failed_ = failed_ || !status.ok();
    return status;
  }

 private:
  absl::Status CheckEmpty() {
    std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
    it->SeekToFirst();
    if (it->Valid()) {
      return absl::DataLossError(
          fmt::format("the journal {} has records but no header: it is damaged, or Muster did not "
                      "write it. Use another spec.stateDirectory",
                      directory_));
    }
    return absl::OkStatus();
  }

  absl::Status WriteHeader(const JournalHeader& header) {
    rocksdb::WriteBatch batch;
    MUSTER_RETURN_IF_ERROR(JournalStatus(PutBatchNumber(newest_batch_ + 1, &batch), directory_));
    MUSTER_RETURN_IF_ERROR(JournalStatus(
        batch.Put(rocksdb::Slice(kHeaderKey.data(), kHeaderKey.size()), EncodeHeader(header)),
        directory_));
    absl::Status status = Put(&batch);
    if (status.ok()) status = MUSTER_FAILPOINT_STATUS("journal.before-first-mark");
    if (status.ok()) status = mark_->Write(++newest_batch_);
    failed_ = failed_ || !status.ok();
    return status;
  }

  absl::Status Put(rocksdb::WriteBatch* batch) {
    rocksdb::WriteOptions write;
    write.sync = true;
    return JournalStatus(db_->Write(write, batch), directory_);
  }

  const std::string directory_;
  std::unique_ptr<rocksdb::DB> db_;
  uint64_t newest_batch_;
  const std::unique_ptr<AcknowledgedMark> mark_;
  std::string job_id_;
  DurableState state_;
  bool failed_ = false;
};

/// Checked under the journal's lock, because a master that writes meanwhile would look like damage.
absl::StatusOr<JournalExtent> LockedExtent(const std::string& directory,
                                           const rocksdb::Options& options) {
  rocksdb::Env* const env = options.env;
  rocksdb::FileLock* lock = nullptr;
  MUSTER_RETURN_IF_ERROR(JournalStatus(env->CreateDirIfMissing(directory), directory));
  MUSTER_RETURN_IF_ERROR(JournalStatus(env->LockFile(directory + "/LOCK", &lock), directory));
  absl::Cleanup unlock = [&] { static_cast<void>(env->UnlockFile(lock)); };
  MUSTER_ASSIGN_OR_RETURN(const std::optional<uint64_t> acknowledged,
                          AcknowledgedMark::Read(env, directory));
  MUSTER_RETURN_IF_ERROR(CheckNotBeheaded(directory, env, acknowledged));
  if (env->FileExists(directory + "/CURRENT").IsNotFound()) return JournalExtent();
  return FindExtent(directory, ForReading(options), acknowledged);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenRocksdbJournal(const std::string& directory,
                                                            const JournalHeader& header,
                                                            const JournalStorage& storage) {
  if (storage.env == nullptr) {
    MUSTER_RETURN_IF_ERROR(MakeDirectories(directory));
    MUSTER_RETURN_IF_ERROR(CheckRoom(directory));
  }
  rocksdb::Options options = JournalOptions(storage);
  MUSTER_FAILPOINT_OR_RETURN("journal.before-open");
  MUSTER_ASSIGN_OR_RETURN(const JournalExtent extent, LockedExtent(directory, options));
  options.wal_recovery_mode = extent.recovery;
  rocksdb::DB* db = nullptr;
  MUSTER_RETURN_IF_ERROR(JournalStatus(rocksdb::DB::Open(options, directory, &db), directory));
  std::unique_ptr<rocksdb::DB> opened(db);
  MUSTER_FAILPOINT_OR_RETURN("journal.after-open");
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<AcknowledgedMark> mark,
                          AcknowledgedMark::Open(options.env, directory, extent.newest_batch));
  auto journal = std::make_unique<RocksdbJournal>(directory, std::move(opened), extent.newest_batch,
                                                  std::move(mark));
  MUSTER_RETURN_IF_ERROR(journal->Load(header));
  MUSTER_FAILPOINT_OR_RETURN("journal.after-load");
  return journal;
}

namespace {

/// kNotFound when there is no journal. `acknowledged` is then known, too.
absl::Status CheckThere(const std::string& directory, rocksdb::Env* env,
                        std::optional<uint64_t>* acknowledged) {
  MUSTER_ASSIGN_OR_RETURN(*acknowledged, AcknowledgedMark::Read(env, directory));
  MUSTER_RETURN_IF_ERROR(CheckNotBeheaded(directory, env, *acknowledged));
  if (std::filesystem::exists(directory + "/CURRENT")) return absl::OkStatus();
  return absl::NotFoundError(fmt::format("there is no journal in {}", directory));
}

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenForReading(const std::string& directory,
                                                            const rocksdb::Options& options) {
  rocksdb::DB* opened = nullptr;
  MUSTER_RETURN_IF_ERROR(
      JournalStatus(rocksdb::DB::OpenForReadOnly(options, directory, &opened), directory));
  return std::unique_ptr<rocksdb::DB>(opened);
}

/// Checks that every acknowledged batch is there; the error names what is missing.
absl::StatusOr<ReadableJournal> OpenChecked(const std::string& directory,
                                            const JournalStorage& storage) {
  const rocksdb::Options options = ForReading(JournalOptions(storage));
  std::optional<uint64_t> acknowledged;
  MUSTER_RETURN_IF_ERROR(CheckThere(directory, options.env, &acknowledged));
  const auto open = [&]() -> absl::StatusOr<ReadableJournal> {
    MUSTER_ASSIGN_OR_RETURN(const JournalExtent extent,
                            FindExtent(directory, options, acknowledged));
    return OpenReadable(directory, options, extent);
  };
  absl::StatusOr<ReadableJournal> opened = open();
  for (int tries = 1; !opened.ok() && tries < kReadTriesMax; ++tries) opened = open();
  return opened;
}

absl::StatusOr<JournalHeader> ReadHeaderOf(rocksdb::DB* db, const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(std::optional<JournalHeader> header, ReadHeader(db, directory));
  if (header.has_value()) return *std::move(header);
  return absl::NotFoundError(fmt::format("the journal in {} is empty", directory));
}

}  // namespace

absl::StatusOr<StoredJournal> ReadRocksdbJournal(const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(const ReadableJournal journal, OpenChecked(directory, {}));
  MUSTER_ASSIGN_OR_RETURN(JournalHeader header, ReadHeaderOf(journal.db.get(), directory));
  MUSTER_ASSIGN_OR_RETURN(DurableState state, ReadState(journal.db.get(), directory));
  return StoredJournal{std::move(header), std::move(state)};
}

absl::StatusOr<JournalHeader> ReadRocksdbHeader(const std::string& directory) {
  const rocksdb::Options options = ForReading(JournalOptions({}));
  std::optional<uint64_t> acknowledged;
  MUSTER_RETURN_IF_ERROR(CheckThere(directory, options.env, &acknowledged));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<rocksdb::DB> db,
                          OpenForReading(directory, options));
  return ReadHeaderOf(db.get(), directory);
}

namespace {

/// Writes a copy's batches, each numbered as those of RocksdbJournal.
class CopyWriter {
 public:
  CopyWriter(rocksdb::DB* db, std::string directory) : db_(db), directory_(std::move(directory)) {}
  absl::Status Add(const rocksdb::Slice& key, const rocksdb::Slice& value) {
    if (batch_.Count() == 0) {
      MUSTER_RETURN_IF_ERROR(JournalStatus(PutBatchNumber(++batches_, &batch_), directory_));
    }
    MUSTER_RETURN_IF_ERROR(JournalStatus(batch_.Put(key, value), directory_));
    return batch_.GetDataSize() < kCopyBytes ? absl::OkStatus() : Write(/*sync=*/false);
  }
  /// Returns how many batches there are, all of them synced.
  absl::StatusOr<uint64_t> Finish() {
    if (batch_.Count() > 0) MUSTER_RETURN_IF_ERROR(Write(/*sync=*/true));
    MUSTER_RETURN_IF_ERROR(JournalStatus(db_->SyncWAL(), directory_));
    return batches_;
  }

 private:
  absl::Status Write(bool sync) {
    rocksdb::WriteOptions options;
    options.sync = sync;
    const rocksdb::Status written = db_->Write(options, &batch_);
    batch_.Clear();
    return JournalStatus(written, directory_);
  }
  rocksdb::DB* const db_;
  const std::string directory_;
  rocksdb::WriteBatch batch_;
  uint64_t batches_ = 0;
};

}  // namespace

namespace {

absl::Status CopyRecords(rocksdb::DB* source, const std::string& from, rocksdb::DB* target,
                         const std::string& to) {
  CopyWriter writer(target, to);
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> it(source->NewIterator(read));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    if (it->key() == rocksdb::Slice(kBatchKey)) continue;
    MUSTER_RETURN_IF_ERROR(writer.Add(it->key(), it->value()));
  }
  MUSTER_RETURN_IF_ERROR(JournalStatus(it->status(), from));
  MUSTER_ASSIGN_OR_RETURN(const uint64_t batches, writer.Finish());
  return AcknowledgedMark::Open(target->GetEnv(), to, batches).status();
}

absl::Status CopyOnce(const std::string& from, const std::string& to,
                      const JournalStorage& storage) {
  MUSTER_ASSIGN_OR_RETURN(const ReadableJournal source, OpenChecked(from, storage));
  rocksdb::DB* opened = nullptr;
  MUSTER_RETURN_IF_ERROR(
      JournalStatus(rocksdb::DB::Open(JournalOptions(storage), to, &opened), to));
  std::unique_ptr<rocksdb::DB> target(opened);
  absl::Status copied = CopyRecords(source.db.get(), from, target.get(), to);
  // After a failed write, RocksDB aborts when it is closed (~RocksdbJournal).
  if (!copied.ok() && !absl::IsDataLoss(copied)) static_cast<void>(target.release());
  return copied;
}

}  // namespace

absl::Status CopyRocksdbJournal(const std::string& from, const std::string& to,
                                const JournalStorage& storage) {
  MUSTER_RETURN_IF_ERROR(CheckRoom(to));
  absl::Status copied = CopyOnce(from, to, storage);
  for (int tries = 1; absl::IsDataLoss(copied) && tries < kReadTriesMax; ++tries) {
    const rocksdb::Status removed = rocksdb::DestroyDB(to, JournalOptions(storage));
    MUSTER_RETURN_IF_ERROR(JournalStatus(removed, to));
    copied = CopyOnce(from, to, storage);
  }
  return copied;
}

absl::StatusOr<bool> IsRocksdbLocked(const std::string& directory) {
  rocksdb::Env* const env = rocksdb::Env::Default();
  if (env->FileExists(directory + "/CURRENT").IsNotFound()) return false;
  rocksdb::FileLock* lock = nullptr;
  const absl::Status status = JournalStatus(env->LockFile(directory + "/LOCK", &lock), directory);
  if (absl::IsUnavailable(status)) return true;
  MUSTER_RETURN_IF_ERROR(status);
  static_cast<void>(env->UnlockFile(lock));
  return false;
}

}  // namespace muster
