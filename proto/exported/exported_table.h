#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "proto/exported/npy.h"
#include "proto/messages/table_spec.h"

namespace muster {

/// One table of a folder written by `muster export`, checked and mapped. Immutable; movable.
class ExportedTable {
 public:
  /// Opens the table with the name of `table` in the export table.warm_start_directory. Verifies
  /// its width or shape, the checksums of its files, that keys ascend, that values are finite, and
  /// the export's hash if the spec pins one. Reads all files of the table; blocks.
  ///
  /// A retry does not help against kFailedPrecondition (no such table, another width or shape, or
  /// not the pinned export), kDataLoss (a wrong checksum) and kInvalidArgument (not written by
  /// `muster export`). kNotFound: no folder or file is there now. Errors name the folder or the
  /// file, and what to do.
  static absl::StatusOr<ExportedTable> Open(const TableSpec& table);

  /// The SHA-256 of the export's SHA256SUMS: what TableSpec::warm_start_hash pins.
  const std::string& hash() const { return hash_; }
  /// Of a sparse table, ascending; empty for a dense one.
  std::span<const uint64_t> keys() const;
  /// Sparse: [keys, dim] float32 row-major; dense: the tensor without padding.
  std::span<const float> values() const;

 private:
  struct Array {
    MappedFile file;
    NpyArray npy;
  };
  ExportedTable(std::string hash, std::optional<Array> keys, Array values)
      : hash_(std::move(hash)), keys_(std::move(keys)), values_(std::move(values)) {}
  static absl::StatusOr<Array> OpenArray(const TableSpec& table, const std::string& name,
                                         const std::string& sum, const NpyHeader& expected);
  absl::Status CheckContents(const TableSpec& table) const;

  std::string hash_;
  std::optional<Array> keys_;  // of a sparse table
  Array values_;
};

}  // namespace muster
