#include "scaler/model/kept_node.h"

namespace muster::scaler {
namespace {

/// The state of a running node without its drain.
NodeState HeardStateOf(const std::optional<MasterSays>& master) {
  if (!master.has_value()) return NodeState::kStarting;
  const bool heard = master->state == NodeState::kRunning || master->state == NodeState::kLost;
  return heard ? master->state : NodeState::kStarting;
}

NodeState StateForPolicies(const KeptNode& kept, const std::optional<MasterSays>& master) {
  if (kept.told_to_end || kept.state == KeptNode::State::kDraining) return NodeState::kDraining;
  const NodeState heard = HeardStateOf(master);
  if (heard != NodeState::kRunning) return heard;
  // A drained worker ends by itself; a server continues.
  const bool leaves = master->drain == DrainState::kDrained && kept.role == NodeRole::kWorker;
  if (master->drain == DrainState::kDraining || leaves) return NodeState::kDraining;
  const bool restores = kept.role == NodeRole::kServer && !master->serves_all;
  return restores ? NodeState::kStarting : NodeState::kRunning;
}

}  // namespace

NodeState NodeStateOf(const KeptNode& kept, const std::optional<MasterSays>& master,
                      StateReader reader) {
  const bool people = reader == StateReader::kPeople;
  switch (kept.state) {
    case KeptNode::State::kWaiting:
      if (kept.starts > 0) return NodeState::kExited;
      return people ? NodeState::kStarting : NodeState::kPlanned;
    case KeptNode::State::kReporting:
      return NodeState::kExited;
    case KeptNode::State::kFinished:
      if (people) return NodeState::kFinished;
      return kept.starts > 0 ? NodeState::kExited : NodeState::kPlanned;
    case KeptNode::State::kRunning:
    case KeptNode::State::kDraining:
      break;
  }
  if (kept.no_process) {
    // A node that was told to end does not wait for a place any more. People see that it is on its
    // way, as starting. Policies see it as draining, so that none judges how long that takes.
    if (kept.told_to_end) return people ? NodeState::kStarting : NodeState::kDraining;
    const bool starting = people && kept.wait == NodeWait::kNone;
    return starting ? NodeState::kStarting : NodeState::kWaiting;
  }
  return people ? HeardStateOf(master) : StateForPolicies(kept, master);
}

}  // namespace muster::scaler
