#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// RocksDB's sorted table files: blocks with XXH3 checksums, compressed on request. Only this file
/// uses RocksDB's headers here. Thread-safe: no shared state.
namespace rocksdb {
class Env;
}

namespace muster::ps {

using PutEntry = absl::FunctionRef<absl::Status(std::string_view key, std::string_view value)>;

struct SstFile {
  uint64_t bytes = 0;
  uint64_t hash = 0;  // XXH3 of all of them, taken while they were written
};

enum class Blocks : uint8_t {
  kPlain,
  kCompressed,  // with LZ4, if that makes a block an eighth smaller
};

/// Creates `path` with the entries that `produce` puts, in ascending order of keys, and syncs it.
/// kResourceExhausted: the disk is full. Errors name the path; the caller then removes the file.
/// `env` is for tests; null: RocksDB's own.
absl::StatusOr<SstFile> WriteSst(const std::string& path,
                                 absl::FunctionRef<absl::Status(PutEntry put)> produce,
                                 Blocks blocks, rocksdb::Env* env = nullptr);

/// Calls `entry` with every entry in order, until a call fails. It accepts any compression of the
/// blocks, and verifies all checksums. A damaged or truncated file is kDataLoss.
absl::Status ReadSst(const std::string& path, PutEntry entry);

}  // namespace muster::ps
