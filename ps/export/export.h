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
  /// A folder, or a bucket (store/names/place.h). A folder must not exist, or must be empty; its
  /// parent must exist. A bucket must have no objects below the prefix.
  std::string output_directory;
  std::vector<TableSpec> tables;
  /// By PartitionId, as in the master's journal.
  std::vector<Manifest> manifests;
};

struct ExportSummary {
  uint64_t tables = 0;
  /// The rows of sparse tables and the blocks of dense tables that were ever pushed.
  uint64_t rows = 0;
  uint64_t bytes = 0;
  /// For people: one sentence for each table that has values that are NaN or infinite.
  std::vector<std::string> warnings;
  /// The hash for TableSpec::warm_start_hash.
  std::string hash;
};

/// Writes every table of the snapshots that the manifests name. It writes NumPy files and their
/// SHA-256 sums; docs/export.md has the format. The output folder appears whole or not at all. In a
/// bucket, the file with the sums comes last.
///
/// It needs memory for the keys of the largest job's tables (8 bytes a row) and for one partition.
/// It blocks, and reads every snapshot file twice. Errors name the file and leave nothing behind.
/// kAlreadyExists: the output's path exists.
absl::StatusOr<ExportSummary> WriteExport(const ExportOptions& options);

/// Returns the rows that `table` starts from: those of the table of the same name in the export in
/// table.warm_start_directory. The checks and errors are those of ExportedTable::Open. The files
/// stay mapped, and it needs 8 bytes for each row besides. It blocks for the disk. Any thread may
/// call it.
absl::StatusOr<std::shared_ptr<const WarmStartSource>> LoadWarmStart(const TableSpec& table,
                                                                     uint32_t partition_count);

}  // namespace muster::ps
