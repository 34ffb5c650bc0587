#include "master/journal/journal_check.h"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/wal_filter.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "master/journal/rocksdb_status.h"

namespace muster {
namespace {

std::string EncodeNumber(uint64_t number) {
  std::string bytes(8, '\0');
  for (int i = 7; i >= 0; --i, number >>= 8) bytes[i] = static_cast<char>(number & 0xff);
  return bytes;
}

uint64_t DecodeNumber(const rocksdb::Slice& bytes) {
  uint64_t number = 0;
  if (bytes.size() != 8) return 0;
  for (size_t i = 0; i < 8; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

/// The number is the first record of its batch.
class NumberReader final : public rocksdb::WriteBatch::Handler {
 public:
  uint64_t number() const { return number_; }
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    if (key == rocksdb::Slice(kBatchKey)) number_ = DecodeNumber(value);
    done_ = true;
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice&) override { return End(); }
  rocksdb::Status DeleteRangeCF(uint32_t, const rocksdb::Slice&, const rocksdb::Slice&) override {
    return End();
  }
  void LogData(const rocksdb::Slice&) override { done_ = true; }
  bool Continue() override { return !done_; }

 private:
  rocksdb::Status End() {
    done_ = true;
    return rocksdb::Status::OK();
  }
  uint64_t number_ = 0;
  bool done_ = false;
};

/// Records which batches the logs have, and applies all or none of them to the store.
class NumberCollector final : public rocksdb::WalFilter {
 public:
  explicit NumberCollector(WalProcessingOption each) : each_(each) {}
  struct Numbered {
    uint64_t number = 0;
    std::string log;
  };
  const char* Name() const override { return "muster.batch-numbers"; }
  WalProcessingOption LogRecordFound(unsigned long long, const std::string& log,
                                     const rocksdb::WriteBatch& batch, rocksdb::WriteBatch*,
                                     bool*) override {
    NumberReader reader;
    static_cast<void>(batch.Iterate(&reader));
    // A batch without a number is RocksDB's own, or from a version that did not count.
    if (reader.number() > 0) {
      const bool follows = last_.has_value() && reader.number() == last_->number + 1;
      if (!follows) pieces_.push_back({{reader.number(), log}, reader.number()});
      pieces_.back().last = reader.number();
      last_ = {reader.number(), log};
    }
    return each_;
  }

  /// Consecutive batches without a gap.
  struct Piece {
    Numbered first;
    uint64_t last = 0;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  const WalProcessingOption each_;
  std::vector<Piece> pieces_;
  std::optional<Numbered> last_;
};

absl::Status Lost(const std::string& directory, std::string_view what) {
  return absl::DataLossError(
      fmt::format("the journal {} is damaged: {}. Put its files back as they were, or restore the "
                  "state directory from a backup, or begin again with another spec.stateDirectory",
                  directory, what));
}

bool EndsWith(const std::string& name, std::string_view end) {
  return name.size() >= end.size() && std::string_view(name).ends_with(end);
}

/// The path of the newest log, by its name; empty: there is none.
std::string NewestLog(const std::string& directory, rocksdb::Env* env) {
  std::vector<std::string> names;
  static_cast<void>(env->GetChildren(directory, &names));
  std::string newest;
  for (const std::string& name : names) {
    if (EndsWith(name, ".log") && name > newest) newest = name;
  }
  return newest.empty() ? newest : fmt::format("{}/{}", directory, newest);
}

/// The newest batch, or kDataLoss if there is a gap after the tables or inside the logs.
absl::StatusOr<uint64_t> NewestWithoutGap(const std::string& directory,
                                          const NumberCollector& collector, uint64_t in_tables) {
  uint64_t newest = in_tables;
  for (const NumberCollector::Piece& piece : collector.pieces()) {
    if (piece.first.number > newest + 1) {
      return Lost(directory,
                  fmt::format("batch {} of {} follows batch {}: the batches between them are "
                              "missing from it, or from the tables and their MANIFEST",
                              piece.first.number, piece.first.log, newest));
    }
    newest = std::max(newest, piece.last);
  }
  return newest;
}

absl::StatusOr<uint64_t> NewestInStore(const std::string& directory, rocksdb::DB* db) {
  std::string value;
  const rocksdb::Status found = db->Get({}, kBatchKey, &value);
  if (found.IsNotFound()) return 0;
  MUSTER_RETURN_IF_ERROR(JournalStatus(found, directory));
  return DecodeNumber(value);
}

absl::StatusOr<JournalExtent> ExtentIn(const std::string& directory,
                                       const rocksdb::Options& options,
                                       rocksdb::WALRecoveryMode recovery, uint64_t acknowledged) {
  NumberCollector collector(rocksdb::WalFilter::WalProcessingOption::kIgnoreCurrentRecord);
  rocksdb::Options reading = options;
  reading.wal_filter = &collector;
  reading.wal_recovery_mode = recovery;
  rocksdb::DB* opened = nullptr;
  MUSTER_RETURN_IF_ERROR(
      JournalStatus(rocksdb::DB::OpenForReadOnly(reading, directory, &opened), directory));
  const std::unique_ptr<rocksdb::DB> db(opened);
  // Checked before anything is changed, and before background compactions read it.
  MUSTER_RETURN_IF_ERROR(JournalStatus(db->VerifyChecksum(), directory));
  // The tables hold all batches up to this one.
  MUSTER_ASSIGN_OR_RETURN(const uint64_t in_tables, NewestInStore(directory, db.get()));
  MUSTER_ASSIGN_OR_RETURN(const uint64_t newest, NewestWithoutGap(directory, collector, in_tables));
  if (newest < acknowledged) {
    const std::string log = NewestLog(directory, options.env);
    return Lost(directory,
                fmt::format("batch {} was acknowledged, but its files end with batch {}: {}",
                            acknowledged, newest,
                            log.empty() ? fmt::format("there is no log {}/<number>.log", directory)
                                        : log + " was cut off or changed"));
  }
  return JournalExtent{.newest_batch = newest, .newest_in_tables = in_tables, .recovery = recovery};
}

}  // namespace

rocksdb::Status PutBatchNumber(uint64_t number, rocksdb::WriteBatch* batch) {
  return batch->Put(kBatchKey, EncodeNumber(number));
}

absl::StatusOr<JournalExtent> FindExtent(const std::string& directory,
                                         const rocksdb::Options& options,
                                         std::optional<uint64_t> acknowledged) {
  absl::StatusOr<JournalExtent> extent =
      ExtentIn(directory, options, JournalExtent().recovery, acknowledged.value_or(0));
  if (absl::IsDataLoss(extent.status()) && acknowledged.has_value()) {
    // A power loss can also leave holes in the last batch. It then fails its checksum instead of
    // ending early. If all acknowledged batches can be read, this one was not acknowledged.
    extent = ExtentIn(directory, options, rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords,
                      *acknowledged);
    if (extent.ok()) extent->recovery = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  }
  return extent;
}

absl::StatusOr<ReadableJournal> OpenReadable(const std::string& directory,
                                             const rocksdb::Options& options,
                                             const JournalExtent& extent) {
  auto collector = std::make_unique<NumberCollector>(
      rocksdb::WalFilter::WalProcessingOption::kContinueProcessing);
  rocksdb::Options reading = options;
  reading.wal_filter = collector.get();
  reading.wal_recovery_mode = extent.recovery;
  rocksdb::DB* opened = nullptr;
  MUSTER_RETURN_IF_ERROR(
      JournalStatus(rocksdb::DB::OpenForReadOnly(reading, directory, &opened), directory));
  std::unique_ptr<rocksdb::DB> db(opened);
  // Its tables hold at least what they held then. If they hold more, the logs may begin later, and
  // the gap is one for us only; the next look knows better.
  MUSTER_RETURN_IF_ERROR(NewestWithoutGap(directory, *collector, extent.newest_in_tables).status());
  MUSTER_ASSIGN_OR_RETURN(const uint64_t newest, NewestInStore(directory, db.get()));
  if (newest < extent.newest_batch) {
    return Lost(directory, fmt::format("it changed while it was read, and now ends with batch {} "
                                       "instead of {}",
                                       newest, extent.newest_batch));
  }
  return ReadableJournal{std::move(collector), std::move(db)};
}

absl::Status CheckNotBeheaded(const std::string& directory, rocksdb::Env* env,
                              std::optional<uint64_t> acknowledged) {
  const std::string current = directory + "/CURRENT";
  if (env->FileExists(current).ok()) {
    std::string manifest;
    MUSTER_RETURN_IF_ERROR(
        JournalStatus(rocksdb::ReadFileToString(env, current, &manifest), directory));
    const bool line = EndsWith(manifest, "\n");
    if (line) manifest.pop_back();
    if (line && env->FileExists(fmt::format("{}/{}", directory, manifest)).ok()) {
      return absl::OkStatus();
    }
    return Lost(directory, fmt::format("{} names '{}', which does not exist", current,
                                       ValidUtf8(manifest, 100)));
  }
  std::vector<std::string> names;
  static_cast<void>(env->GetChildren(directory, &names));  // no folder: nothing is there
  for (const std::string& name : names) {
    // A log begins after CURRENT is on disk, so a crash cannot leave a log without it.
    if (acknowledged.value_or(0) > 0 || EndsWith(name, ".log") || EndsWith(name, ".sst")) {
      return Lost(directory, fmt::format("{} is missing", current));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
