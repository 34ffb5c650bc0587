#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/messages/control.h"
#include "proto/messages/table_spec.h"
#include "ps/engine/warm_start.h"

namespace muster::ps {

struct ExportOptions {
  std::string job;
  uint64_t seed = 0;
  std::string snapshot_directory;  // a folder, or a bucket (store/names/place.h)
  /// A folder that must not exist or be empty, and whose parent must exist; or a bucket
  /// (store/names/place.h) without objects below the prefix.
  std::string output_directory;
  std::vector<TableSpec> tables;
  /// By PartitionId, as the master's journal has them.
  std::vector<Manifest> manifests;
};

struct ExportSummary {
  uint64_t tables = 0;
  /// Rows of sparse tables and blocks of dense ones that were ever pushed.
  uint64_t rows = 0;
  uint64_t bytes = 0;
  /// For people: a sentence for each table with values that are NaN or infinite.
  std::vector<std::string> warnings;
  /// The hash for TableSpec::warm_start_hash.
  std::string hash;
};

/// Writes every table of the snapshots that the manifests name as NumPy files with their SHA-256
/// sums; docs/export.md has the format. The output folder appears whole or not at all; in a bucket,
/// the file with the sums comes last. Needs memory
/// for the keys of the largest job's tables (8 bytes a row) and for one partition. Blocks; reads
/// every snapshot file twice. Errors name the file and leave nothing behind; kAlreadyExists if the
/// output's path exists.
absl::StatusOr<ExportSummary> WriteExport(const ExportOptions& options);

/// The rows that `table` starts from: those of the table of the same name in the export in
/// table.warm_start_directory. Checks and errors are those of ExportedTable::Open. Keeps the files
/// mapped; 8 bytes a row besides. Blocks for the disk; any thread.
absl::StatusOr<std::shared_ptr<const WarmStartSource>> LoadWarmStart(const TableSpec& table,
                                                                     uint32_t partition_count);

}  // namespace muster::ps
