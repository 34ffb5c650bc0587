#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/state_directory.h"
#include "proto/admin.pb.h"

namespace muster {

/// Writes the tables that `manifest` describes into `output_directory` (docs/export.md). The job's
/// seed and partitions come from the copy of its job file in the state directory.
absl::Status WriteExportOf(const v1::GetManifestResponse& manifest, const StateDirectory& state,
                           const std::string& output_directory);

}  // namespace muster
