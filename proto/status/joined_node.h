#pragma once

#include "proto/messages/node_role.h"
#include "proto/status/node_status.h"

namespace muster {

/// True if `muster join` runs the node: on its machine, where the scaler of the job has no power
/// over it. Master and scaler name a machine, too, when they run in a cluster. Pure.
inline bool IsJoined(const NodeStatus& node) {
  const bool is_the_jobs_own =
      node.role == ToString(NodeRole::kMaster) || node.role == ToString(NodeRole::kScaler);
  return !node.host.empty() && !is_the_jobs_own;
}

}  // namespace muster
