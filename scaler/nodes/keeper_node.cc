#include "scaler/nodes/keeper_node.h"

namespace muster::scaler {
namespace {

using Ending = NodePlan::Ending;

KeeperNode::State StateOf(const NodePlan& plan) {
  switch (plan.state) {
    case NodePlan::State::kIdle:
      break;
    case NodePlan::State::kRunning:
      return KeeperNode::Running{.found = true, .limits = plan.limits, .ending = plan.ending};
    case NodePlan::State::kFinished:
      return KeeperNode::Finished{};
  }
  return KeeperNode::Waiting{};
}

KeptNode::State ShownState(const KeeperNode::Waiting&) {
  return KeptNode::State::kWaiting;
}
KeptNode::State ShownState(const KeeperNode::Running& life) {
  return life.ending == Ending::kDrain ? KeptNode::State::kDraining : KeptNode::State::kRunning;
}
KeptNode::State ShownState(const KeeperNode::Reporting&) {
  return KeptNode::State::kReporting;
}
KeptNode::State ShownState(const KeeperNode::Finished&) {
  return KeptNode::State::kFinished;
}

}  // namespace

KeeperNode::KeeperNode(std::string its_name, const RestartPolicy::Options& restarts,
                       const NodePlan& plan)
    : name(std::move(its_name)),
      role(plan.role),
      starts(plan.starts),
      pid(plan.pid),
      limits(plan.limits),
      former_limits(plan.former_limits),
      placed_limits(plan.placed_limits),
      policy(restarts, plan.exits),
      leaves(RestartPolicy::Endless(restarts), plan.leaves),
      shortages(RestartPolicy::Endless(restarts)),
      disruptions(RestartPolicy::Endless(restarts)),
      state(StateOf(plan)) {}

const KeeperNode::Running* KeeperNode::life() const {
  const Reporting* const gone = std::get_if<Reporting>(&state);
  return gone != nullptr ? &gone->life : std::get_if<Running>(&state);
}

bool KeeperNode::leaving() const {
  return role == NodeRole::kWorker && life() != nullptr && life()->ending == Ending::kDrain;
}

bool KeeperNode::progressed(uint64_t now) const {
  if (const Reporting* const gone = std::get_if<Reporting>(&state)) return gone->progressed;
  const Running* const running = std::get_if<Running>(&state);
  return running != nullptr && running->seen && running->progress_at_start != now;
}

NodePlan KeeperNode::plan() const {
  return {.role = role,
          .state = life() != nullptr ? NodePlan::State::kRunning
                   : is<Finished>()  ? NodePlan::State::kFinished
                                     : NodePlan::State::kIdle,
          .starts = starts,
          .exits = policy.exits(),
          .leaves = leaves.exits(),
          .pid = pid,
          .limits = limits,
          .former_limits = former_limits,
          .placed_limits = placed_limits,
          .ending = life() != nullptr ? life()->ending : Ending::kNone};
}

KeptNode KeeperNode::Shown(uint64_t now) const {
  const Running* const present = life();
  const Ending ending = present != nullptr ? present->ending : Ending::kNone;
  // A scaler that took the node over has not told it to end, but the plan says that it must.
  const bool told = present != nullptr &&
                    (present->stop_due.has_value() || leaving() || ending == Ending::kRestart);
  KeptNode kept{.name = name,
                .role = role,
                .starts = starts,
                .state = std::visit([](const auto& each) { return ShownState(each); }, state),
                .pid = present != nullptr ? pid : 0,
                .limits = limits,
                .started_at = started_at,
                .seen_running = present != nullptr && present->seen,
                .told_to_end = told,
                .progressed = progressed(now),
                .exits = policy.exits(),
                .placed_limits = placed_limits};
  if (const Running* const running = std::get_if<Running>(&state)) {
    kept.no_process = !running->begun && !running->found;
    kept.wait = running->wait;
    kept.wait_reason = running->wait_reason;
    kept.waits_since = running->waits_since;
  }
  return kept;
}

}  // namespace muster::scaler
