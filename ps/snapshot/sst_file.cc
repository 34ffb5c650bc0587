#include "ps/snapshot/sst_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/status.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"

namespace muster::ps {
namespace {

/// RocksDB's default buffer has 1 MiB for each file. The system maps and clears it each time. A
/// smaller buffer is not mapped.
constexpr size_t kBufferBytes = 128 << 10;

/// Computes the XXH3 of all bytes while they are written. If the file were read back for it, the
/// system would map it page by page.
class Xxh3 final : public rocksdb::FileChecksumGenerator {
 public:
  Xxh3() : state_(XXH3_createState()) {
    MUSTER_CHECK(state_ != nullptr && XXH3_64bits_reset(state_.get()) == XXH_OK);
  }
  void Update(const char* data, size_t bytes) override {
    MUSTER_CHECK(XXH3_64bits_update(state_.get(), data, bytes) == XXH_OK);
  }
  void Finalize() override { hash_ = XXH3_64bits_digest(state_.get()); }
  std::string GetChecksum() const override {
    return {reinterpret_cast<const char*>(&hash_), sizeof(hash_)};
  }
  const char* Name() const override { return "XXH3"; }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
  uint64_t hash_ = 0;
};

class Xxh3Factory final : public rocksdb::FileChecksumGenFactory {
 public:
  std::unique_ptr<rocksdb::FileChecksumGenerator> CreateFileChecksumGenerator(
      const rocksdb::FileChecksumGenContext&) override {
    return std::make_unique<Xxh3>();
  }
  const char* Name() const override { return "XXH3"; }
};

uint64_t HashOf(const rocksdb::ExternalSstFileInfo& info) {
  uint64_t hash = 0;
  MUSTER_CHECK(info.file_checksum.size() == sizeof(hash));
  std::memcpy(&hash, info.file_checksum.data(), sizeof(hash));
  return hash;
}

rocksdb::Options SstOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.checksum = rocksdb::kXXH3;
  table.block_size = 64 << 10;
  table.no_block_cache = true;  // a file is read once, from end to end
  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Slice ToSlice(std::string_view text) {
  return {text.data(), text.size()};
}

absl::Status ToStatus(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = fmt::format("{}: {}", what, status.ToString());
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(text);
  if (status.IsCorruption()) return absl::DataLossError(text);
  if (status.IsPathNotFound()) return absl::NotFoundError(text);
  return absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<SstFile> WriteSst(const std::string& path,
                                 absl::FunctionRef<absl::Status(PutEntry put)> produce,
                                 Blocks blocks, rocksdb::Env* env) {
  rocksdb::Options options = SstOptions();
  options.compression =
      blocks == Blocks::kCompressed ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
  options.file_checksum_gen_factory = std::make_shared<Xxh3Factory>();
  if (env != nullptr) options.env = env;
  rocksdb::EnvOptions buffers;
  buffers.writable_file_max_buffer_size = kBufferBytes;
  // The pages stay in the cache, so a server that dies soon is restored from them.
  rocksdb::SstFileWriter writer(buffers, options, nullptr,
                                /*invalidate_page_cache=*/false);
  const std::string what = fmt::format("cannot write {}", path);
  MUSTER_RETURN_IF_ERROR(ToStatus(writer.Open(path), what));
  MUSTER_RETURN_IF_ERROR(produce([&](std::string_view key, std::string_view value) {
    return ToStatus(writer.Put(ToSlice(key), ToSlice(value)), what);
  }));
  MUSTER_FAILPOINT_OR_RETURN("snapshot.before-sync");
  rocksdb::ExternalSstFileInfo info;
  MUSTER_RETURN_IF_ERROR(ToStatus(writer.Finish(&info), what));
  return SstFile{info.file_size, HashOf(info)};
}

absl::Status ReadSst(const std::string& path, PutEntry entry) {
  rocksdb::SstFileReader reader(SstOptions());
  const std::string what = fmt::format("cannot read {}", path);
  MUSTER_RETURN_IF_ERROR(ToStatus(reader.Open(path), what));
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.readahead_size = 2 << 20;
  const std::unique_ptr<rocksdb::Iterator> iterator(reader.NewIterator(options));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    const rocksdb::Slice key = iterator->key();
    const rocksdb::Slice value = iterator->value();
    MUSTER_RETURN_IF_ERROR(entry({key.data(), key.size()}, {value.data(), value.size()}));
  }
  return ToStatus(iterator->status(), what);
}

}  // namespace muster::ps
