#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/show/output.h"
#include "cli/state/state_directory.h"
#include "proto/admin.pb.h"
#include "proto/status/job_status.h"

namespace muster {

/// Writes the tables that `manifest` describes into `output_directory` (docs/export.md), and prints
/// a warning for each table with values that are NaN or infinite. The job's seed and partitions
/// come from the copy of its job file in the state directory.
absl::Status WriteExportOf(const v1::GetManifestResponse& manifest, const StateDirectory& state,
                           const std::string& output_directory);

/// The request for the weights of `epoch`: "best", or a number from 1. If empty, it asks for the
/// newest weights. kInvalidArgument for any other text.
absl::StatusOr<v1::GetManifestRequest> ManifestRequestFor(std::string_view epoch);

/// How to fetch a manifest, and how to write its export.
struct ExportSteps {
  std::function<absl::StatusOr<v1::GetManifestResponse>()> fetch;
  std::function<absl::Status(const v1::GetManifestResponse&)> write;
};
/// A running job deletes the files of a manifest as soon as newer ones replace them. If `write`
/// fails because of that, it is tried again with the newest manifest, kExportTriesMax times in all.
/// Returns the manifest that was written.
inline constexpr int kExportTriesMax = 10;
absl::StatusOr<v1::GetManifestResponse> ExportWhileItRuns(const ExportSteps& steps);

/// How many tables an export of this manifest has. Each tensor of a group's state is one table.
uint64_t ExportedTables(const v1::GetManifestResponse& manifest);

/// A note for an export of the newest weights: other weights were better and are kept. Empty if
/// none are.
std::string KeptBestNote(const JobStatus& status);

/// Says what was written.
void PrintExported(OutputFormat format, const std::string& output_directory, uint64_t tables);

}  // namespace muster
