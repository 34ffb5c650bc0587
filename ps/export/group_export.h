#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/group_state.h"
#include "ps/export/export.h"

namespace muster::ps {

/// A checkpoint of a synchronous group.
struct GroupExportOptions {
  std::string job;
  uint64_t seed = 0;
  std::string snapshot_directory;  // as in ExportOptions
  std::string output_directory;    // as in ExportOptions
  /// The tensors of the model's state, in the order in which members register them. Buckets are not
  /// among them.
  std::vector<GroupTensor> tensors;
  StateLabel label;
  /// All stripes, in order, each with its object.
  std::vector<StateStripe> stripes;
};

/// Writes every tensor of a checkpoint as a NumPy file, as WriteExport writes dense tables.
/// kDataLoss: a stripe is damaged or has the wrong length, or the checkpoint belongs to another
/// model. It needs memory for one stripe. It blocks. Errors name the object and leave nothing
/// behind.
absl::StatusOr<ExportSummary> WriteGroupExport(const GroupExportOptions& options);

}  // namespace muster::ps
