#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// RocksDB's sorted table files: blocks compressed with zstd, each with its XXH3 checksum. The only
/// place that knows RocksDB's headers here. Thread-safe: no shared state.
namespace rocksdb {
class Env;
}

namespace muster::ps {

using PutEntry = absl::FunctionRef<absl::Status(std::string_view key, std::string_view value)>;

/// Creates `path` with the entries that `produce` puts, in ascending order of keys, and syncs it.
/// kResourceExhausted when the disk is full. Errors name the path; the file is then to be removed.
/// `env` is for tests; null: RocksDB's own.
absl::Status WriteSst(const std::string& path,
                      absl::FunctionRef<absl::Status(PutEntry put)> produce,
                      rocksdb::Env* env = nullptr);

/// Calls `entry` with every entry in order, all checksums verified, until it fails. A damaged or
/// truncated file is kDataLoss.
absl::Status ReadSst(const std::string& path, PutEntry entry);

}  // namespace muster::ps
