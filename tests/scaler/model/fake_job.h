#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "scaler/policy/policy.h"

namespace muster::scaler {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// The work of a node of a FakeJob in a second.
struct Load {
  // workers
  double minibatches = 50;
  double records_each = 64;
  double computing_us = 8'000;  // per minibatch
  double waiting_shards = 0.02;
  double waiting_pulls = 0.2;
  double waiting_pushes = 0.1;
  uint32_t shards_held = 2;
  uint64_t awaited_step = 0;
  uint32_t peers_waiting = 0;
  GroupPart group_part = GroupPart::kNone;
  double group_moves = 0;
  // servers
  double requests = 200;
  double service_us = 100;
  double round_trip_us = 500;
  double bytes_each = 4'000;  // of a request and its answer
  uint32_t partitions_serving = 4;
  // both
  double cpus = 0.5;
  double throttled = 0;
  double memory_mib = 100;
  double memory_pressure = -1;
  double cpu_pressure = -1;
};

/// A job on virtual time whose nodes do what their loads say: one sample a second, totals that
/// grow.
class FakeJob {
 public:
  JobView view;
  std::map<std::string, Load> loads;

  FakeJob() {
    view.now = TimePoint(std::chrono::hours(1));
    view.activity = Activity::kTraining;
    view.machine = {.cpus = 8, .memory_bytes = 16'384 * kMiB};
  }

  FakeJob& Add(NodeRole role, uint32_t count, Load load = {}, Resources limits = {}) {
    for (uint32_t i = 0; i < count; ++i) {
      NodeView node{.name = fmt::format("{}-{}", ToString(role), added_[role]++),
                    .role = role,
                    .start = 1,
                    .state = NodeState::kRunning,
                    .started_at = view.now,
                    .limits = limits,
                    .requested = limits};
      loads[node.name] = load;
      view.nodes.push_back(std::move(node));
    }
    view.workers_min = view.workers_max = added_[NodeRole::kWorker];
    return *this;
  }

  NodeView& Node(const std::string& name) {
    return *std::find_if(view.nodes.begin(), view.nodes.end(),
                         [&](const NodeView& node) { return node.name == name; });
  }

  /// One second goes by.
  void Tick() {
    view.now += std::chrono::seconds(1);
    for (NodeView& node : view.nodes) {
      const bool runs = node.state != NodeState::kPlanned && node.state != NodeState::kExited &&
                        node.state != NodeState::kWaiting;
      if (!runs) continue;
      Grow(&node, loads.at(node.name), &totals_[node.name]);
      if (node.samples.size() > 600) node.samples.erase(node.samples.begin());
    }
  }

  /// A step of `policy`; what happened to nodes is told once.
  std::vector<Proposal> Step(Policy* policy) {
    std::vector<Proposal> proposals = policy->Step(view);
    for (const NodeEnd& end : view.ends) Count(end);
    view.ends.clear();
    view.taken.clear();
    return proposals;
  }

  /// Ticks and steps for so long; all that was proposed, `second` (from 1) told before each tick.
  std::vector<Proposal> Run(Policy* policy, int seconds,
                            const std::function<void(int second)>& before = nullptr) {
    std::vector<Proposal> all;
    for (int second = 1; second <= seconds; ++second) {
      if (before) before(second);
      Tick();
      for (Proposal& proposal : Step(policy)) all.push_back(std::move(proposal));
    }
    return all;
  }

  /// A node ended, and will be started again.
  NodeEnd& End(const std::string& name, EndCause cause) {
    NodeView& node = Node(name);
    node.state = NodeState::kExited;
    view.ends.push_back({.node = name,
                         .role = node.role,
                         .start = node.start,
                         .at = view.now,
                         .cause = cause,
                         .exit = cause == EndCause::kProgram ? "exit 1" : "SIGKILL",
                         .exits = exits_[name],
                         .memory_peak_bytes = node.limits.memory_bytes,
                         .memory_limit_bytes = node.limits.memory_bytes});
    return view.ends.back();
  }
  void Start(const std::string& name) {
    NodeView& node = Node(name);
    ++node.start;
    node.state = NodeState::kRunning;
    node.started_at = view.now;
    node.samples.clear();
    totals_[name] = {};
  }

  /// Counts an end as a keeper does, of whom every policy but crash-loop excuses those that it
  /// answers. Step() does.
  void Count(const NodeEnd& end) {
    const bool out_of_memory =
        end.cause == EndCause::kKernelOutOfMemory || end.cause == EndCause::kOwnOutOfMemory;
    const bool own = end.cause == EndCause::kProgram || end.cause == EndCause::kClean ||
                     (out_of_memory && end.memory_limit_bytes == 0);
    if (own) exits_[end.node] = end.progressed ? 1 : end.exits + 1;
  }

  /// Policies will hear that it was done.
  void NoteTaken(const Proposal& proposal) {
    const auto workers = [](const Amount& amount) {
      const uint32_t* const count = std::get_if<uint32_t>(&amount);
      return count == nullptr ? 0 : *count;
    };
    view.taken.push_back({.policy = proposal.policy,
                          .target = proposal.target,
                          .action = proposal.action,
                          .at = view.now,
                          .workers_before = workers(proposal.before),
                          .workers_after = workers(proposal.after)});
  }
  /// Does what was proposed at once.
  void CarryOut(const Proposal& proposal) {
    NoteTaken(proposal);
    if (const Resources* after = std::get_if<Resources>(&proposal.after)) {
      Node(proposal.target).limits = *after;
    }
    if (proposal.action == Action::kRestart) Start(proposal.target);
  }

 private:
  struct Totals {
    double group_moved = 0;
    double cpu = 0, throttled = 0, records = 0, minibatches = 0, computing = 0, waiting_shards = 0,
           waiting_pulls = 0, waiting_pushes = 0, requests = 0, serving = 0, round_trip = 0,
           bytes = 0;
  };

  static std::chrono::microseconds Micros(double seconds) {
    return std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
  }

  void Grow(NodeView* node, const Load& load, Totals* totals) {
    totals->cpu += load.cpus;
    totals->throttled += load.throttled;
    NodeSample sample{.at = view.now,
                      .cpu = Micros(totals->cpu),
                      .throttled = Micros(totals->throttled),
                      .memory_bytes = static_cast<uint64_t>(load.memory_mib * kMiB),
                      .memory_limit_bytes = node->limits.memory_bytes,
                      .memory_pressure_percent = load.memory_pressure,
                      .cpu_pressure_percent = load.cpu_pressure};
    if (node->role == NodeRole::kWorker) {
      totals->group_moved += load.group_moves;
      totals->minibatches += load.minibatches;
      totals->records += load.minibatches * load.records_each;
      totals->computing += load.minibatches * load.computing_us / 1e6;
      totals->waiting_shards += load.waiting_shards;
      totals->waiting_pulls += load.waiting_pulls;
      totals->waiting_pushes += load.waiting_pushes;
      view.records_trained += static_cast<uint64_t>(load.minibatches * load.records_each);
      sample.worker = {.records = static_cast<uint64_t>(totals->records),
                       .minibatches = static_cast<uint64_t>(totals->minibatches),
                       .computing = Micros(totals->computing),
                       .waiting_shards = Micros(totals->waiting_shards),
                       .waiting_pulls = Micros(totals->waiting_pulls),
                       .waiting_pushes = Micros(totals->waiting_pushes),
                       .shards_held = load.shards_held,
                       .awaited_step = load.awaited_step,
                       .peers_waiting = load.peers_waiting,
                       .group_part = load.group_part,
                       .group_moved = static_cast<uint64_t>(totals->group_moved)};
    } else {
      totals->requests += load.requests;
      totals->serving += load.requests * load.service_us / 1e6;
      totals->round_trip += load.requests * load.round_trip_us / 1e6;
      totals->bytes += load.requests * load.bytes_each;
      const auto requests = static_cast<uint64_t>(totals->requests);
      sample.server = {.pulls = requests / 2,
                       .rows = requests * 100,
                       .parts = requests - requests / 2,
                       .moved_bytes = static_cast<uint64_t>(totals->bytes),
                       .serving = Micros(totals->serving),
                       .peer_requests = requests,
                       .peer_round_trip = Micros(totals->round_trip),
                       .partitions_serving = load.partitions_serving};
    }
    node->samples.push_back(sample);
  }

  std::map<NodeRole, uint32_t> added_;
  std::map<std::string, uint32_t> exits_;  // in a row without progress
  std::map<std::string, Totals> totals_;
};

/// For messages of failed tests.
inline void PrintTo(const Proposal& proposal, std::ostream* out) {
  *out << ToString(proposal.action) << " of " << proposal.target << ": " << proposal.because;
}

/// The value of a figure in the evidence; NaN when there is none of that name.
inline double Figure(const Proposal& proposal, const std::string& name) {
  for (const Evidence& evidence : proposal.evidence) {
    if (evidence.name == name) return evidence.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

inline std::vector<Action> Actions(const std::vector<Proposal>& proposals) {
  std::vector<Action> actions;
  for (const Proposal& proposal : proposals) actions.push_back(proposal.action);
  return actions;
}

}  // namespace muster::scaler
