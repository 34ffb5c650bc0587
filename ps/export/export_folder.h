#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/export/export.h"

/// What all exports have in common: how their folder appears, and its sums. Internal to ps/export.
namespace muster::ps {

/// Lets `write` fill a folder, which then becomes `output_directory`, whole or not at all; or lets
/// its files become the objects of a bucket, the one with the sums last. Errors as of WriteExport.
absl::StatusOr<ExportSummary> WriteWhole(
    const std::string& output_directory,
    absl::FunctionRef<absl::StatusOr<ExportSummary>(const std::string& folder)> write);

/// Makes the files of the folder durable, and then writes their SHA-256 sums. Fills in the bytes
/// and the hash.
absl::Status WriteSums(const std::string& folder, const std::vector<std::string>& files,
                       ExportSummary* summary);

}  // namespace muster::ps
