#include "scaler/nodes/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace muster::scaler {
namespace {

using State = NodePlan::State;

/// True if the exit of this start was reported, or if another start has followed it.
bool IsStale(const NodePlan& node, uint32_t start) {
  return start < node.starts || (start == node.starts && node.state != State::kRunning);
}

}  // namespace

Plan NewPlan(const std::string& run_id, uint32_t servers, uint32_t workers,
             const InitialLimits& limits) {
  Plan plan{.run_id = run_id, .began_wall_us = 0, .workers = workers, .nodes = {}};
  for (uint32_t i = 0; i < servers; ++i) {
    plan.nodes.emplace(fmt::format("ps-{}", i),
                       NodePlan{.role = NodeRole::kServer, .limits = limits.server});
  }
  for (uint32_t i = 0; i < workers; ++i) {
    plan.nodes.emplace(WorkerName(i), NodePlan{.role = NodeRole::kWorker, .limits = limits.worker});
  }
  return plan;
}

Adoption Adopt(Plan plan, const std::vector<FoundNode>& found) {
  Adoption adoption;
  std::map<std::string, uint32_t> alive;  // the newest start of each
  std::set<std::pair<std::string, uint32_t>> refused;
  for (const FoundNode& node : found) {
    const auto entry = plan.nodes.find(node.node);
    if (!node.alive) {
      refused.emplace(node.node, node.start);
    } else if (entry != plan.nodes.end() && !IsStale(entry->second, node.start)) {
      uint32_t& newest = alive[node.node];
      newest = std::max(newest, node.start);
    }
  }
  for (const FoundNode& node : found) {
    const auto newest = alive.find(node.node);
    if (node.alive && (newest == alive.end() || newest->second != node.start)) {
      adoption.stale.push_back(node);
    }
  }
  for (auto& [name, node] : plan.nodes) {
    if (const auto newest = alive.find(name); newest != alive.end()) {
      // A start number above the plan's is possible if the plan could not be written.
      if (newest->second != node.starts) {
        node.pid = 0;
        node.former_limits.reset();
        if (node.ending == NodePlan::Ending::kRestart) node.ending = NodePlan::Ending::kNone;
      }
      node.starts = newest->second;
      node.state = State::kRunning;
    } else if (node.state == State::kRunning && node.pid != 0) {
      adoption.died.push_back(name);
    } else if (node.state == State::kRunning) {
      // A worker that was told to leave before its process was heard of has left.
      const bool left = node.role == NodeRole::kWorker && node.ending == NodePlan::Ending::kDrain;
      node.state = left ? State::kFinished : State::kIdle;
      node.ending = NodePlan::Ending::kNone;
      // Without a socket, the process was never begun, so its number is free.
      if (!refused.contains({name, node.starts})) --node.starts;
    }
  }
  adoption.plan = std::move(plan);
  return adoption;
}

Adoption AdoptWithoutPlan(Plan plan, const std::vector<FoundNode>& found) {
  const auto worker = plan.nodes.find(WorkerName(0));
  for (const FoundNode& node : found) {
    const std::optional<uint32_t> number = WorkerNumber(node.node);
    if (!number.has_value() || *number >= kWorkersMax) continue;
    NodePlan fresh{.role = NodeRole::kWorker, .state = State::kFinished};
    if (worker != plan.nodes.end()) fresh.limits = worker->second.limits;
    plan.nodes.emplace(node.node, fresh);
  }
  for (const FoundNode& node : found) {
    const auto entry = plan.nodes.find(node.node);
    if (entry == plan.nodes.end() || node.start < entry->second.starts) continue;
    // The start number of a dead node counts as used, too.
    entry->second.starts = node.start;
    const bool added = WorkerNumber(node.node).value_or(0) >= plan.workers;
    entry->second.state = node.alive ? State::kRunning : added ? State::kFinished : State::kIdle;
  }
  const auto workers = std::count_if(plan.nodes.begin(), plan.nodes.end(), [](const auto& entry) {
    return entry.second.role == NodeRole::kWorker && entry.second.state != State::kFinished;
  });
  plan.workers = static_cast<uint32_t>(workers);
  return Adopt(std::move(plan), found);
}

}  // namespace muster::scaler
