#include "cli/run/node_counts.h"

#include <algorithm>

namespace muster {
namespace {

bool HasExited(const NodeStatus& node) {
  return node.state == NodeState::kExited;
}

}  // namespace

uint32_t CountRunning(const JobStatus& status, NodeRole role) {
  return static_cast<uint32_t>(std::count_if(
      status.nodes.begin(), status.nodes.end(),
      [&](const auto& node) { return node.role == ToString(role) && !HasExited(node); }));
}

uint32_t CountRestarts(const JobStatus& status, NodeRole role) {
  uint32_t restarts = 0;
  for (const NodeStatus& node : status.nodes) {
    if (node.role == ToString(role)) restarts += node.restarts;
  }
  return restarts;
}

uint32_t WorkersWanted(std::optional<uint32_t> planned, const JobStatus* status,
                       uint32_t replicas) {
  if (planned.has_value()) return *planned;
  if (status == nullptr) return replicas;
  uint32_t seen = 0;
  uint32_t wanted = 0;
  for (const NodeStatus& node : status->nodes) {
    if (node.role != ToString(NodeRole::kWorker)) continue;
    ++seen;
    if (!HasExited(node) || node.drain == DrainState::kNone) ++wanted;
  }
  return seen < replicas ? replicas : wanted;
}

}  // namespace muster
