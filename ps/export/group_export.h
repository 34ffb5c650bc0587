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
  /// The state of the model, in the order in which members register it; no buckets.
  std::vector<GroupTensor> tensors;
  StateLabel label;
  /// Every stripe, in order, with its object.
  std::vector<StateStripe> stripes;
};

/// Writes every tensor of a checkpoint as a NumPy file, as WriteExport writes dense tables.
/// kDataLoss: a stripe is damaged or has another length, or the checkpoint is not of this model.
/// Needs memory for one stripe. Blocks. Errors name the object and leave nothing behind.
absl::StatusOr<ExportSummary> WriteGroupExport(const GroupExportOptions& options);

}  // namespace muster::ps
