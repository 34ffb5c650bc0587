#include "ps/snapshot/sst_file.h"

#include <fmt/format.h>

#include <memory>

#include "base/failpoint.h"
#include "base/status.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"

namespace muster::ps {
namespace {

rocksdb::Options SstOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.checksum = rocksdb::kXXH3;
  table.block_size = 64 << 10;
  table.no_block_cache = true;  // a file is read once, from end to end
  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kZSTD;
  // Floats hardly compress; the fastest level takes what there is.
  options.compression_opts.level = 1;
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

absl::Status WriteSst(const std::string& path,
                      absl::FunctionRef<absl::Status(PutEntry put)> produce, rocksdb::Env* env) {
  rocksdb::Options options = SstOptions();
  if (env != nullptr) options.env = env;
  // The pages stay in the cache: a server that dies soon is restored from them.
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options, nullptr,
                                /*invalidate_page_cache=*/false);
  const std::string what = fmt::format("cannot write {}", path);
  MUSTER_RETURN_IF_ERROR(ToStatus(writer.Open(path), what));
  MUSTER_RETURN_IF_ERROR(produce([&](std::string_view key, std::string_view value) {
    return ToStatus(writer.Put(ToSlice(key), ToSlice(value)), what);
  }));
  MUSTER_FAILPOINT_OR_RETURN("snapshot.before-sync");
  return ToStatus(writer.Finish(), what);
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
