#include "scaler/core/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace muster::scaler {
namespace {

using State = NodePlan::State;

/// The exit of this start has been told, or another start has followed it.
bool IsStale(const NodePlan& node, uint32_t start) {
  return start < node.starts || (start == node.starts && node.state != State::kRunning);
}

}  // namespace

Plan NewPlan(const std::string& run_id, uint32_t servers, uint32_t workers) {
  Plan plan{.run_id = run_id, .workers = workers, .nodes = {}};
  for (uint32_t i = 0; i < servers; ++i) {
    plan.nodes.emplace(fmt::format("ps-{}", i), NodePlan{.role = NodeRole::kServer});
  }
  for (uint32_t i = 0; i < workers; ++i) {
    plan.nodes.emplace(fmt::format("worker-{}", i), NodePlan{.role = NodeRole::kWorker});
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
      // Beyond the plan when the plan could not be written.
      if (newest->second != node.starts) node.pid = 0;
      node.starts = newest->second;
      node.state = State::kRunning;
    } else if (node.state == State::kRunning && node.pid != 0) {
      adoption.died.push_back(name);
    } else if (node.state == State::kRunning) {
      node.state = State::kIdle;
      // Without a socket it was not even begun, and the number is free.
      if (!refused.contains({name, node.starts})) --node.starts;
    }
  }
  adoption.plan = std::move(plan);
  return adoption;
}

}  // namespace muster::scaler
