#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/export/export.h"

/// The common part of all exports: how their folder appears, and its sums. Internal to ps/export.
namespace muster::ps {

/// Lets `write` fill a folder. The folder then becomes `output_directory`, whole or not at all. If
/// that is a bucket, its files become objects, and the one with the sums comes last. Errors are as
/// for WriteExport.
absl::StatusOr<ExportSummary> WriteWhole(
    const std::string& output_directory,
    absl::FunctionRef<absl::StatusOr<ExportSummary>(const std::string& folder)> write);

/// Makes the files of the folder durable, and then writes their SHA-256 sums. Sets the bytes and
/// the hash of `summary`.
absl::Status WriteSums(const std::string& folder, const std::vector<std::string>& files,
                       ExportSummary* summary);

}  // namespace muster::ps
