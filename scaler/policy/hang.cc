#include "scaler/policy/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scaler/model/sample_span.h"

namespace muster::scaler {
namespace {

using std::chrono::nanoseconds;

nanoseconds Times(nanoseconds duration, double factor) {
  return nanoseconds(static_cast<int64_t>(static_cast<double>(duration.count()) * factor));
}

double Seconds(nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

constexpr std::chrono::seconds kCpuWindow{60};
/// The least growth of memory that counts. Smaller changes come and go by themselves.
constexpr uint64_t kGrowth = uint64_t{1} << 20;
/// Repeated doubling ends here: a start may then take 64 times as long.
constexpr uint32_t kDoublingsMax = 6;
/// The most starved workers that the evidence names.
constexpr size_t kStarvedNamed = 5;
/// A thread that does not answer for this long is named.

bool ServersServe(const JobView& view) {
  return std::all_of(view.nodes.begin(), view.nodes.end(), [](const NodeView& node) {
    return node.role == NodeRole::kWorker || node.state == NodeState::kRunning ||
           node.state == NodeState::kDraining;
  });
}

/// True if something other than the node itself may prevent its progress.
bool OthersToBlame(const JobView& view, const NodeView& node) {
  if (!view.master_heard || view.activity == Activity::kOver) return true;
  if (node.role == NodeRole::kWorker && view.sources_away) return true;
  // A server can restore without other nodes, but a worker needs all servers.
  if (node.role == NodeRole::kWorker && !ServersServe(view)) return true;
  return view.activity == Activity::kReplaying && node.state != NodeState::kStarting;
}

WorkerTotals Newest(const NodeView& node) {
  return node.samples.empty() ? WorkerTotals() : node.samples.back().worker;
}

GroupPart PartOf(const NodeView& node) {
  return node.role == NodeRole::kWorker ? Newest(node).group_part : GroupPart::kNone;
}

/// True while the node starts. A member of a group starts until it has joined.
bool Starts(const NodeView& node) {
  return node.state == NodeState::kStarting ||
         (node.state == NodeState::kRunning && PartOf(node) == GroupPart::kJoin);
}

/// Cores in use over the last minute, or over a shorter time if there are no older samples.
double CpusNow(const JobView& view, const NodeView& node) {
  const std::optional<Span> span = SpanSince(node, view.now - kCpuWindow, std::chrono::seconds(5));
  return span.has_value() ? span->cpus() : 0;
}

}  // namespace

std::vector<Proposal> HangPolicy::Step(const JobView& view) {
  for (const NodeView& node : view.nodes) Watch(view, node, &nodes_[node.name]);
  NoteActions(view);
  const std::vector<const NodeView*> starved = Starved(view);
  const NodeView* const suspect = starved.empty() ? nullptr : Suspect(view);
  const bool servers_accused = !starved.empty() && ServersAccused(view);
  std::vector<Proposal> proposals;
  for (const NodeView& node : view.nodes) {
    std::optional<Proposal> proposal;
    if (Starts(node)) {
      proposal = JudgeStart(view, node);
    } else if (&node == suspect) {
      proposal = JudgeServer(view, node, starved);
    } else if (node.role == NodeRole::kWorker && node.state == NodeState::kRunning) {
      // A worker that only waits for a hanging server is not to blame.
      if (!servers_accused || !OnlyWaits(view, node)) proposal = JudgeWorker(view, node);
    }
    if (!proposal.has_value()) continue;
    Node& state = nodes_.at(node.name);
    state.proposed = state.phase;
    proposals.push_back(*std::move(proposal));
  }
  return proposals;
}

void HangPolicy::NoteActions(const JobView& view) {
  for (const ActionTaken& taken : view.taken) {
    const auto found = nodes_.find(taken.target);
    if (taken.policy != name() || found == nodes_.end()) continue;
    Node& state = found->second;
    if (taken.action == Action::kDumpStacks) state.dumped_at = taken.at;
    if (taken.action != Action::kRestart) continue;
    if (state.proposed == Phase::kStarting) ++state.slow_starts;
    if (state.proposed == Phase::kWorking) state.restarted_at = taken.at;
  }
}

void HangPolicy::Watch(const JobView& view, const NodeView& node, Node* state) {
  const nanoseconds passed =
      state->counted_at == TimePoint() ? nanoseconds(0) : view.now - state->counted_at;
  state->counted_at = view.now;
  const bool worker = node.role == NodeRole::kWorker;
  const WorkerTotals totals = Newest(node);
  const bool has_work = !worker || totals.shards_held > 0 || totals.awaited_step > 0;
  const Phase phase = Starts(node)                                    ? Phase::kStarting
                      : node.state == NodeState::kRunning && has_work ? Phase::kWorking
                                                                      : Phase::kIdle;
  const bool new_life = state->start != node.start;
  if (new_life) {
    *state = {.start = node.start,
              .counted_at = view.now,
              .longest = state->longest,
              .proposed = state->proposed,
              .slow_starts = state->slow_starts,
              .restarted_at = state->restarted_at};
  }
  if (phase != Phase::kStarting && node.state == NodeState::kRunning) state->slow_starts = 0;
  const bool progresses = Progresses(node, state);
  if (progresses && !new_life) state->progress_at = view.now;
  // The progress of a worker that is taking the group's state says nothing about its minibatches.
  const bool trains = worker && !Starts(node) && totals.group_part != GroupPart::kLearn;
  if (progresses && !new_life && trains) {
    state->longest = std::max(state->longest, state->silence + passed);
    state->minibatch_at = view.now;
    went_on_at_ = view.now;
  }
  if (new_life || progresses || phase != state->phase || phase == Phase::kIdle) {
    state->phase = phase;
    state->silence = nanoseconds(0);
    state->dumped_at.reset();
    return;
  }
  if (!OthersToBlame(view, node)) state->silence += passed;
}

bool HangPolicy::Progresses(const NodeView& node, Node* state) const {
  if (node.samples.empty()) return false;
  const NodeSample& newest = node.samples.back();
  if (Starts(node)) {
    const bool restores = newest.server.partitions_serving != state->progress;
    const bool grows = newest.memory_bytes >= state->memory_high + kGrowth;
    state->progress = newest.server.partitions_serving;
    if (grows) state->memory_high = newest.memory_bytes;
    return restores || grows;
  }
  if (node.role == NodeRole::kServer) {
    const uint64_t served = newest.server.pulls + newest.server.parts;
    return std::exchange(state->progress, served) != served;
  }
  const WorkerTotals& totals = newest.worker;
  const bool finished = std::exchange(state->progress, totals.minibatches) != totals.minibatches;
  // A member may have no minibatch in a step, so another awaited step is progress, too. But that
  // the group stops waiting for it is no progress yet.
  const uint64_t moved = std::exchange(state->moved, totals.group_moved);
  if (totals.awaited_step == 0) return finished;
  if (totals.group_part == GroupPart::kLearn && moved != totals.group_moved) return true;
  const uint64_t before = std::exchange(state->step, totals.awaited_step);
  return finished || (before > 0 && before != totals.awaited_step);
}

std::vector<const NodeView*> HangPolicy::Starved(const JobView& view) const {
  if (OthersProgress(view, "", options_.silence_min / 2)) return {};
  std::vector<const NodeView*> starved;
  for (const NodeView& node : view.nodes) {
    if (node.role != NodeRole::kWorker || node.state != NodeState::kRunning) continue;
    const Node& state = nodes_.at(node.name);
    if (state.silence >= AllowedAlone(state) && OnlyWaits(view, node)) starved.push_back(&node);
  }
  return starved;
}

bool HangPolicy::WasTried(const Node& state) const {
  return state.restarted_at.has_value() && *state.restarted_at >= went_on_at_;
}

bool HangPolicy::ServersAccused(const JobView& view) const {
  return std::any_of(view.nodes.begin(), view.nodes.end(), [this](const NodeView& node) {
    if (node.role != NodeRole::kServer) return false;
    const Node& state = nodes_.at(node.name);
    const bool silent = node.state == NodeState::kRunning && state.silence >= options_.silence_min;
    // A restarted server gets this much time to show whether the restart helped.
    return WasTried(state) ? !silent : silent;
  });
}

const NodeView* HangPolicy::Suspect(const JobView& view) const {
  const NodeView* suspect = nullptr;
  const auto likelier = [&](const NodeView& node, const NodeView& than) {
    const bool burns = CpusNow(view, node) >= options_.looping_cpus;
    const bool other_burns = CpusNow(view, than) >= options_.looping_cpus;
    if (burns != other_burns) return burns;
    return nodes_.at(node.name).progress_at < nodes_.at(than.name).progress_at;
  };
  for (const NodeView& node : view.nodes) {
    if (node.role != NodeRole::kServer) continue;
    const Node& state = nodes_.at(node.name);
    // If any server answers, or has just come back, the job may make progress.
    if (node.state != NodeState::kRunning || state.silence < options_.silence_min) return nullptr;
    if (WasTried(state)) continue;
    if (suspect == nullptr || likelier(node, *suspect)) suspect = &node;
  }
  return suspect;
}

std::optional<Proposal> HangPolicy::JudgeStart(const JobView& view, const NodeView& node) const {
  const Node& state = nodes_.at(node.name);
  const nanoseconds allowed = nanoseconds(options_.first_silence_min) *
                              (int64_t{1} << std::min(state.slow_starts, kDoublingsMax));
  if (state.silence < allowed) return std::nullopt;
  const auto window = std::chrono::duration_cast<std::chrono::seconds>(state.silence);
  std::vector<Evidence> evidence = {
      {"time without a sign of progress", Seconds(state.silence), "s", window},
      {"time allowed", Seconds(allowed), "s"},
      {"memory", static_cast<double>(state.memory_high), "bytes"},
      {"CPU", CpusNow(view, node), "cores", kCpuWindow}};
  std::string what =
      PartOf(node) == GroupPart::kJoin
          ? "runs, and has not joined the group: it has not called NextStep, or hangs in it,"
          : "runs, and the master has heard nothing of it";
  if (node.role == NodeRole::kServer) {
    evidence.push_back(
        {"partitions that serve", static_cast<double>(state.progress), "partitions"});
    what = "runs, and has not got on with its restore";
  }
  return Answer(view, node, fmt::format("{} for {:.0f} s", what, Seconds(state.silence)),
                std::move(evidence));
}

std::optional<Proposal> HangPolicy::JudgeServer(const JobView& view, const NodeView& node,
                                                const std::vector<const NodeView*>& starved) const {
  const Node& state = nodes_.at(node.name);
  const auto window = std::chrono::duration_cast<std::chrono::seconds>(state.silence);
  std::vector<Evidence> evidence = {
      {"time without a request served", Seconds(state.silence), "s", window},
      {"workers that wait for servers", static_cast<double>(starved.size()), "workers"},
      {"CPU", CpusNow(view, node), "cores", kCpuWindow}};
  for (size_t i = 0; i < std::min(starved.size(), kStarvedNamed); ++i) {
    evidence.push_back({starved[i]->name + " without a minibatch",
                        Seconds(nodes_.at(starved[i]->name).silence), "s"});
  }
  return Answer(
      view, node,
      fmt::format(
          "has served no request for {:.0f} s, while {} {} for rows or "
          "acknowledgements and no worker makes progress",
          Seconds(state.silence), starved.front()->name,
          starved.size() == 1 ? "waits" : fmt::format("and {} more wait", starved.size() - 1)),
      std::move(evidence));
}

std::optional<Proposal> HangPolicy::JudgeWorker(const JobView& view, const NodeView& node) const {
  const Node& state = nodes_.at(node.name);
  const nanoseconds allowed = Allowed(view, node, state);
  if (state.silence < allowed) return std::nullopt;
  const auto window = std::chrono::duration_cast<std::chrono::seconds>(state.silence);
  const WorkerTotals totals = Newest(node);
  std::vector<Evidence> evidence = {
      {"time without a minibatch", Seconds(state.silence), "s", window},
      {"time allowed", Seconds(allowed), "s"},
      {"longest between two minibatches", Seconds(state.longest), "s"},
      {"CPU", CpusNow(view, node), "cores", kCpuWindow}};
  std::string what = "holds work";
  if (totals.group_part == GroupPart::kLearn) {
    evidence.push_back({"step", static_cast<double>(totals.awaited_step), "steps"});
    return Answer(
        view, node,
        fmt::format("is to learn the state of the group, and has got nothing for {:.0f} s",
                    Seconds(state.silence)),
        std::move(evidence));
  }
  if (totals.awaited_step > 0) {
    evidence.push_back({"step", static_cast<double>(totals.awaited_step), "steps"});
    evidence.push_back(
        {"members that wait for it", static_cast<double>(totals.peers_waiting), "members"});
    what = fmt::format("owes the group its part of step {}", totals.awaited_step);
  } else {
    evidence.push_back({"shards held", static_cast<double>(totals.shards_held), "shards"});
  }
  return Answer(
      view, node,
      fmt::format("{} and has finished no minibatch for {:.0f} s", what, Seconds(state.silence)),
      std::move(evidence));
}

std::optional<Proposal> HangPolicy::Answer(const JobView& view, const NodeView& node,
                                           const std::string& what,
                                           std::vector<Evidence> evidence) const {
  const std::optional<TimePoint>& dumped_at = nodes_.at(node.name).dumped_at;
  if (dumped_at.has_value() && view.now - *dumped_at < options_.dump_grace) return std::nullopt;
  const bool restart = dumped_at.has_value();
  return Proposal{
      .policy = name(),
      .action = restart ? Action::kRestart : Action::kDumpStacks,
      .target = node.name,
      .before = restart ? Amount(node.limits) : Amount(),
      .after = restart ? Amount(node.limits) : Amount(),
      .evidence = std::move(evidence),
      .because = fmt::format("{} {}, {}", node.name, what,
                             restart ? "its stacks were requested before: it is started again"
                                     : "so its stacks are written into its log")};
}

nanoseconds HangPolicy::AllowedAlone(const Node& state) const {
  const nanoseconds least = state.progress == 0 ? options_.first_silence_min : options_.silence_min;
  return std::max(least, Times(state.longest, options_.times_longest));
}

nanoseconds HangPolicy::Allowed(const JobView& view, const NodeView& node,
                                const Node& state) const {
  const nanoseconds allowed = AllowedAlone(state);
  // Other members have done their part, so nothing that is common to all members is to blame.
  if (Newest(node).peers_waiting > 0) return allowed;
  const bool loops = CpusNow(view, node) >= options_.looping_cpus && !OnlyWaits(view, node);
  if (loops || OthersProgress(view, node.name, options_.silence_min / 2)) return allowed;
  return Times(allowed, options_.alone_factor);
}

bool HangPolicy::OnlyWaits(const JobView& view, const NodeView& node) const {
  const std::optional<Span> span =
      SpanSince(node, view.now - options_.silence_min, options_.silence_min / 2);
  return span.has_value() && WaitsForServers(*span, options_.only_waits);
}

bool HangPolicy::OthersProgress(const JobView& view, const std::string& name,
                                nanoseconds within) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const auto& [other, state] = entry;
    return other != name && state.minibatch_at.has_value() &&
           view.now - *state.minibatch_at <= within;
  });
}

}  // namespace muster::scaler
