#include "scaler/policy/hang.h"

#include <fmt/format.h>

#include <algorithm>

#include "scaler/policy/window.h"

namespace muster::scaler {
namespace {

using std::chrono::nanoseconds;

nanoseconds Times(nanoseconds duration, double factor) {
  return nanoseconds(static_cast<int64_t>(static_cast<double>(duration.count()) * factor));
}

double Seconds(nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Something else than the worker itself may keep it from its next minibatch.
bool OthersToBlame(const JobView& view) {
  if (view.activity == Activity::kStarting || view.activity == Activity::kReplaying ||
      view.activity == Activity::kOver) {
    return true;
  }
  return std::any_of(view.nodes.begin(), view.nodes.end(), [](const NodeView& node) {
    return node.role != NodeRole::kWorker && node.state != NodeState::kRunning &&
           node.state != NodeState::kDraining;
  });
}

/// Over the last minute, or as much of it as there is.
double CpusNow(const JobView& view, const NodeView& node) {
  const std::optional<Span> span =
      SpanSince(node, view.now - std::chrono::seconds(60), std::chrono::seconds(5));
  return span.has_value() ? span->cpus() : 0;
}

}  // namespace

std::vector<Proposal> HangPolicy::Step(const JobView& view) {
  for (const NodeView& node : view.nodes) {
    if (node.role == NodeRole::kWorker) Watch(view, node, &nodes_[node.name]);
  }
  for (const ActionTaken& taken : view.taken) {
    const auto node = nodes_.find(taken.target);
    if (taken.policy == name() && taken.action == Action::kDumpStacks && node != nodes_.end()) {
      node->second.dumped_at = taken.at;
    }
  }
  std::vector<Proposal> proposals;
  for (const NodeView& node : view.nodes) {
    if (node.role != NodeRole::kWorker || node.state != NodeState::kRunning) continue;
    const Node& state = nodes_.at(node.name);
    const nanoseconds allowed = Allowed(view, node, state);
    if (state.silence < allowed) continue;
    if (state.dumped_at.has_value() && view.now - *state.dumped_at < options_.dump_grace) continue;
    const auto window = std::chrono::duration_cast<std::chrono::seconds>(state.silence);
    const bool relaunch = state.dumped_at.has_value();
    proposals.push_back(
        {.policy = name(),
         .action = relaunch ? Action::kRelaunch : Action::kDumpStacks,
         .target = node.name,
         .before = relaunch ? Amount(node.limits) : Amount(),
         .after = relaunch ? Amount(node.limits) : Amount(),
         .evidence = {{"time without a minibatch", Seconds(state.silence), "s", window},
                      {"time allowed", Seconds(allowed), "s"},
                      {"longest between two minibatches", Seconds(state.longest), "s"},
                      {"shards held",
                       static_cast<double>(
                           node.samples.empty() ? 0 : node.samples.back().worker.shards_held),
                       "shards"},
                      {"CPU", CpusNow(view, node), "cores", std::chrono::seconds(60)}},
         .because = fmt::format("{} holds work and has finished no minibatch for {:.0f} s, {}",
                                node.name, Seconds(state.silence),
                                relaunch ? "its stacks are in its log: it is started again"
                                         : "so its stacks are written into its log")});
  }
  return proposals;
}

void HangPolicy::Watch(const JobView& view, const NodeView& node, Node* state) const {
  const nanoseconds passed =
      state->counted_at == TimePoint() ? nanoseconds(0) : view.now - state->counted_at;
  state->counted_at = view.now;
  const bool new_life = state->start != node.start;
  const uint64_t minibatches = node.samples.empty() ? 0 : node.samples.back().worker.minibatches;
  if (new_life) *state = {.start = node.start, .counted_at = view.now, .longest = state->longest};
  const bool works = node.state == NodeState::kRunning && !node.samples.empty() &&
                     node.samples.back().worker.shards_held > 0;
  if (new_life || minibatches != state->minibatches || !works) {
    if (!new_life && minibatches != state->minibatches) {
      state->longest = std::max(state->longest, state->silence + passed);
      state->progress_at = view.now;
    }
    state->minibatches = minibatches;
    state->silence = nanoseconds(0);
    state->dumped_at.reset();
    return;
  }
  if (!OthersToBlame(view)) state->silence += passed;
}

nanoseconds HangPolicy::Allowed(const JobView& view, const NodeView& node,
                                const Node& state) const {
  nanoseconds allowed = state.minibatches == 0 ? options_.first_silence_min : options_.silence_min;
  allowed = std::max(allowed, Times(state.longest, options_.times_longest));
  if (OthersProgress(view, node.name, options_.silence_min / 2) ||
      CpusNow(view, node) >= options_.looping_cpus) {
    return allowed;
  }
  return Times(allowed, options_.alone_factor);
}

bool HangPolicy::OthersProgress(const JobView& view, const std::string& name,
                                nanoseconds within) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const auto& [other, state] = entry;
    return other != name && state.minibatches > 0 && view.now - state.progress_at <= within;
  });
}

}  // namespace muster::scaler
