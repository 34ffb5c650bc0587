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
  /// Opens the table of the name of `table` in the export table.warm_start_directory, for a table
  /// of that width or shape. Verifies the sums of its files, that keys ascend and that values are
  /// finite; and the export's hash when the spec pins one. Reads all of the table's files; blocks.
  ///
  /// Waiting does not mend kFailedPrecondition (no such table, another width or shape, another
  /// export than the pinned one), kDataLoss (a file does not have its sum) and kInvalidArgument
  /// (not what `muster export` writes). kNotFound: no folder or file there now. Errors name the
  /// folder or the file, and what to do.
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
