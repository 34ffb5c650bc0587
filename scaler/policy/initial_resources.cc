#include "scaler/policy/initial_resources.h"

#include <fmt/format.h>

#include <algorithm>

#include "scaler/policy/out_of_memory.h"

namespace muster::scaler {
namespace {

bool NamesNone(const NodeView& node) {
  return node.requested == Resources{} && node.limits == Resources{} && node.max == Resources{};
}

const RoleHistory* HistoryOf(const JobView& view, NodeRole role) {
  const auto history = view.history.find(role);
  const bool known = history != view.history.end() && history->second.runs > 0 &&
                     history->second.memory_peak_bytes > 0;
  return known ? &history->second : nullptr;
}

}  // namespace

std::vector<Proposal> InitialResourcesPolicy::Step(const JobView& view) {
  double capacity = options_.machine_share * static_cast<double>(view.machine.memory_bytes);
  if (view.budget.memory_bytes > 0) {
    const double budget = static_cast<double>(view.budget.memory_bytes);
    capacity = capacity > 0 ? std::min(capacity, budget) : budget;
  }
  // What other nodes were given is taken. Nodes without limits share the rest.
  double nodes = 0;
  double wanted = 0;
  for (const NodeView& node : view.nodes) {
    if (!NamesNone(node)) {
      capacity = std::max(capacity - static_cast<double>(node.limits.memory_bytes), 0.0);
      continue;
    }
    ++nodes;
    const RoleHistory* history = HistoryOf(view, node.role);
    if (history != nullptr) {
      wanted += FromHistory(*history);
    }
  }
  const double share = wanted > capacity && capacity > 0 ? capacity / wanted : 1;
  std::vector<Proposal> proposals;
  for (const NodeView& node : view.nodes) {
    if (node.state != NodeState::kPlanned || node.start > 0 || !NamesNone(node)) continue;
    if (HistoryOf(view, node.role) == nullptr && capacity <= 0) continue;
    if (!proposed_.insert(node.name).second) continue;
    proposals.push_back(ForNode(view, node, options_.handed_out * capacity / nodes, share));
  }
  return proposals;
}

double InitialResourcesPolicy::FromHistory(const RoleHistory& history) const {
  return std::max(options_.memory_margin * static_cast<double>(history.memory_peak_bytes),
                  static_cast<double>(options_.memory_min_bytes));
}

Proposal InitialResourcesPolicy::ForNode(const JobView& view, const NodeView& node, double capacity,
                                         double share) const {
  const RoleHistory* history = HistoryOf(view, node.role);
  Proposal proposal{.policy = name(),
                    .action = Action::kResize,
                    .kind = Proposal::Kind::kRepair,
                    .target = node.name,
                    .before = node.limits};
  Resources after;
  if (history == nullptr) {
    // Rounded down to a MiB, because all shares together must fit.
    after.memory_bytes = std::max(static_cast<uint64_t>(capacity) >> 20, uint64_t{1}) << 20;
    proposal.evidence = {
        {"memory of the machine", static_cast<double>(view.machine.memory_bytes), "bytes"},
        {"its share", capacity, "bytes"}};
    proposal.because = fmt::format(
        "the job file names no resources for {}, and no earlier run is known that trained for a "
        "minute, or to its end: it starts with {}, an even share of {:g} % of the memory; the "
        "rest of the memory is kept for nodes that need more, and for more workers",
        node.name, BytesText(after.memory_bytes), 100 * options_.handed_out);
  } else {
    const double peak = static_cast<double>(history->memory_peak_bytes);
    after.memory_bytes = RoundUpToMiB(share * FromHistory(*history));
    if (history->cpus_p95 > 0) {
      after.cpus = std::max(options_.cpu_margin * history->cpus_p95, options_.cpus_min);
      if (view.machine.cpus > 0) after.cpus = std::min(after.cpus, view.machine.cpus);
    }
    proposal.evidence = {{"memory peak of earlier runs", peak, "bytes"},
                         {"CPU of earlier runs, 95th percentile", history->cpus_p95, "cores"},
                         {"earlier runs", static_cast<double>(history->runs), "runs"}};
    proposal.because = fmt::format(
        "the job file names no resources for {}; nodes of its role needed up to {} in {} earlier "
        "run{}: it starts with {}",
        node.name, BytesText(history->memory_peak_bytes), history->runs,
        history->runs == 1 ? "" : "s", ToString(after));
  }
  proposal.after = after;
  return proposal;
}

}  // namespace muster::scaler
