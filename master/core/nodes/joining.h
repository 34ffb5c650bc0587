#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "master/core/core_options.h"
#include "master/core/nodes/node_table.h"

namespace muster {

/// A process that another machine wants to run for the job (`muster join`).
struct JoinWish {
  NodeRole role = NodeRole::kWorker;
  std::string name;  // empty: the only one that there is
  std::string host;  // of the machine
};
struct Joining {
  std::string name;
  StartNumber first_start;  // larger than every earlier one of this node
};

/// The name and the start number with which such a process may run. kInvalidArgument for a name
/// that no joined node can have; kFailedPrecondition if the job has no such place, or if a live
/// node of another machine has it. Pure; changes nothing.
absl::StatusOr<Joining> JudgeJoin(const JoinWish& wish, const NodeTable& nodes,
                                  const CoreOptions& options);

}  // namespace muster
