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

#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "master/journal/record_codec.h"
#include "master/journal/rocksdb_status.h"

namespace muster {
namespace {

constexpr size_t kMemtableBytes = 16 << 20;
constexpr size_t kCacheBytes = 8 << 20;
/// What opening a journal and going on for a while may write.
constexpr size_t kRoomBytes = 1 << 20;

/// RocksDB aborts when the disk fills up while it opens, so there is a look at the room beforehand.
absl::Status CheckRoom(const std::string& directory) {
  const std::string probe = directory + "/room.probe";
  const absl::Status status = WriteFileAtomically(probe, std::string(kRoomBytes, '\0'));
  ::unlink(probe.c_str());
  if (!absl::IsResourceExhausted(status)) return status;
  return DiskFull(fmt::format("the journal {}: {}", directory, Message(status)));
}

rocksdb::Options JournalOptions() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // Only a torn record at the log's very end is dropped: it was never synced, so never answered.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.manual_wal_flush = false;
  options.write_buffer_size = kMemtableBytes;
  options.max_write_buffer_number = 2;
  options.max_total_wal_size = 4 * kMemtableBytes;
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

/// RocksDB's own notes are not kept: where only reading is wanted, its log file is not wanted
/// either.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

absl::StatusOr<std::optional<JournalHeader>> ReadHeader(rocksdb::DB* db,
                                                        const std::string& directory) {
  std::string value;
  const rocksdb::Status found =
      db->Get({}, rocksdb::Slice(kHeaderKey.data(), kHeaderKey.size()), &value);
  if (found.IsNotFound()) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(JournalStatus(found, directory));
  MUSTER_ASSIGN_OR_RETURN(JournalHeader header, DecodeHeader(value));
  return header;
}

absl::StatusOr<DurableState> ReadState(rocksdb::DB* db, const std::string& directory) {
  DurableState state;
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string_view key(it->key().data(), it->key().size());
    if (key == kHeaderKey) continue;
    MUSTER_ASSIGN_OR_RETURN(const Mutation mutation,
                            Decode(key, {it->value().data(), it->value().size()}));
    Apply(mutation, &state);
  }
  MUSTER_RETURN_IF_ERROR(JournalStatus(it->status(), directory));
  return state;
}

class RocksdbJournal final : public Journal {
 public:
  RocksdbJournal(std::string directory, std::unique_ptr<rocksdb::DB> db)
      : directory_(std::move(directory)), db_(std::move(db)) {}
  ~RocksdbJournal() override {
    // After a failed write RocksDB aborts when it is closed: it is left open for the process's end.
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
    for (const Mutation& mutation : mutations) {
      StoreChange change = Encode(mutation);
      const rocksdb::Status added = change.value.has_value() ? batch.Put(change.key, *change.value)
                                    : change.end.empty()
                                        ? batch.Delete(change.key)
                                        : batch.DeleteRange(change.key, change.end);
      MUSTER_RETURN_IF_ERROR(JournalStatus(added, directory_));
    }
    return Commit(&batch);
  }

 private:
  absl::Status CheckEmpty() {
    std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
    it->SeekToFirst();
    if (it->Valid()) {
      return absl::DataLossError(
          fmt::format("the journal {} has records but no header: it is not Muster's, or damaged. "
                      "Use another spec.stateDirectory",
                      directory_));
    }
    return absl::OkStatus();
  }

  absl::Status WriteHeader(const JournalHeader& header) {
    rocksdb::WriteBatch batch;
    MUSTER_RETURN_IF_ERROR(JournalStatus(
        batch.Put(rocksdb::Slice(kHeaderKey.data(), kHeaderKey.size()), EncodeHeader(header)),
        directory_));
    return Commit(&batch);
  }

  absl::Status Commit(rocksdb::WriteBatch* batch) {
    rocksdb::WriteOptions write;
    write.sync = true;
    absl::Status status = MUSTER_FAILPOINT_STATUS("journal.before-write");
    if (status.ok()) status = JournalStatus(db_->Write(write, batch), directory_);
    if (status.ok()) status = MUSTER_FAILPOINT_STATUS("journal.after-write");
    failed_ = failed_ || !status.ok();
    return status;
  }

  const std::string directory_;
  std::unique_ptr<rocksdb::DB> db_;
  std::string job_id_;
  DurableState state_;
  bool failed_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenRocksdbJournal(const std::string& directory,
                                                            const JournalHeader& header) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(directory));
  MUSTER_RETURN_IF_ERROR(CheckRoom(directory));
  MUSTER_FAILPOINT_OR_RETURN("journal.before-open");
  rocksdb::DB* db = nullptr;
  MUSTER_RETURN_IF_ERROR(
      JournalStatus(rocksdb::DB::Open(JournalOptions(), directory, &db), directory));
  auto journal = std::make_unique<RocksdbJournal>(directory, std::unique_ptr<rocksdb::DB>(db));
  MUSTER_FAILPOINT_OR_RETURN("journal.after-open");
  MUSTER_RETURN_IF_ERROR(journal->Load(header));
  MUSTER_FAILPOINT_OR_RETURN("journal.after-load");
  return journal;
}

absl::StatusOr<StoredJournal> ReadRocksdbJournal(const std::string& directory) {
  if (!std::filesystem::exists(directory + "/CURRENT")) {
    return absl::NotFoundError(fmt::format("there is no journal in {}", directory));
  }
  rocksdb::Options options = JournalOptions();
  options.create_if_missing = false;
  options.info_log = std::make_shared<NoLog>();
  rocksdb::DB* opened = nullptr;
  MUSTER_RETURN_IF_ERROR(
      JournalStatus(rocksdb::DB::OpenForReadOnly(options, directory, &opened), directory));
  const std::unique_ptr<rocksdb::DB> db(opened);
  MUSTER_ASSIGN_OR_RETURN(std::optional<JournalHeader> header, ReadHeader(db.get(), directory));
  if (!header.has_value()) {
    return absl::NotFoundError(fmt::format("the journal in {} is empty", directory));
  }
  MUSTER_ASSIGN_OR_RETURN(DurableState state, ReadState(db.get(), directory));
  return StoredJournal{*std::move(header), std::move(state)};
}

}  // namespace muster
