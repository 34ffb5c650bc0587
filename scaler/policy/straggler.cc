#include "scaler/policy/straggler.h"

#include <fmt/format.h>

#include <algorithm>

#include "scaler/policy/room.h"

namespace muster::scaler {
namespace {

/// The most stretches of training without a break that are kept. Each is at least a step long, so
/// these cover more than the longest window.
constexpr size_t kStretchesMax = 256;
/// Two samples that are closer to each other than this say nothing.
constexpr std::chrono::milliseconds kReadingsApart{1};

}  // namespace

StragglerJudge::StragglerJudge(std::string policy, NodeRole role, std::vector<CostKind> costs,
                               const StragglerOptions& options)
    : policy_(std::move(policy)), role_(role), kinds_(std::move(costs)), options_(options) {}

std::vector<Proposal> StragglerJudge::Step(const JobView& view) {
  NoteActions(view);
  NoteTraining(view);
  if (view.activity != Activity::kTraining) return {};
  const Costs costs = Measure(view);
  std::vector<Proposal> proposals;
  for (const NodeView& node : view.nodes) {
    const auto measured = costs.find(node.name);
    if (measured == costs.end()) continue;
    Node& state = nodes_[node.name];
    state.past.resize(kinds_.size());
    const std::optional<Verdict> verdict = Judge(costs, node.name);
    const double limit = !verdict.has_value()           ? 0
                         : state.slow_since.has_value() ? options_.clear_ratio
                                                        : verdict->needed_ratio;
    if (!verdict.has_value() || verdict->ratio < limit) {
      state.slow_since.reset();
      // A node between well and slow is not remembered, because such costs are not its usual ones.
      if (!verdict.has_value() || verdict->ratio < options_.clear_ratio) {
        Remember(view, costs, node.name, &state);
      }
      continue;
    }
    state.well_since.reset();
    if (!state.slow_since.has_value()) state.slow_since = view.now;
    std::optional<Proposal> proposal = Act(view, node, state, *verdict);
    if (proposal.has_value()) proposals.push_back(*std::move(proposal));
  }
  return proposals;
}

void StragglerJudge::NoteActions(const JobView& view) {
  for (const ActionTaken& taken : view.taken) {
    const auto node = nodes_.find(taken.target);
    if (taken.policy != policy_ || node == nodes_.end()) continue;
    node->second.acted_at = taken.at;
    if (taken.action == Action::kResize) node->second.cpu_given = true;
    if (taken.action == Action::kRestart) ++node->second.restarts;
  }
}

void StragglerJudge::NoteTraining(const JobView& view) {
  if (view.activity == Activity::kTraining) {
    if (!in_stretch_) {
      const auto wait = stretches_.empty() ? options_.settle : options_.resettle;
      stretches_.push_back({.begin = view.now + wait, .end = view.now});
    }
    in_stretch_ = true;
    stretches_.back().end = view.now;
    while (stretches_.size() > kStretchesMax) stretches_.pop_front();
    return;
  }
  in_stretch_ = false;
  if (view.activity == Activity::kEvaluating) return;
  stretches_.clear();
  for (auto& [name, node] : nodes_) node.slow_since.reset();
}

StragglerJudge::Costs StragglerJudge::Measure(const JobView& view) const {
  Costs costs;
  for (const NodeView& node : view.nodes) {
    if (node.role != role_ || node.state != NodeState::kRunning) continue;
    std::vector<std::optional<Cost>>& mine = costs[node.name];
    for (const CostKind& kind : kinds_) mine.push_back(MeasureOne(node, kind));
  }
  return costs;
}

StragglerJudge::Measured StragglerJudge::Collect(const NodeView& node, const CostKind& kind,
                                                 std::chrono::seconds window) const {
  const TimePoint settled = node.started_at + options_.settle;
  Measured measured;
  for (auto stretch = stretches_.rbegin(); stretch != stretches_.rend(); ++stretch) {
    const TimePoint asked = stretch->end - (window - measured.time);
    const TimePoint from = std::max({asked, stretch->begin, settled});
    measured.full = from == asked;
    if (const std::optional<Span> span = SpanBetween(node, from, stretch->end, kReadingsApart)) {
      const Effort effort = kind.effort(*span);
      measured.effort.time += effort.time;
      measured.effort.work += effort.work;
      measured.effort.bytes += effort.bytes;
      measured.time += span->end->at - span->begin->at;
    }
    if (measured.full) break;
  }
  return measured;
}

std::optional<StragglerJudge::Cost> StragglerJudge::MeasureOne(const NodeView& node,
                                                               const CostKind& kind) const {
  if (kind.fresh.count() > 0 && Collect(node, kind, kind.fresh).effort.work == 0) {
    return std::nullopt;
  }
  for (std::chrono::seconds window = options_.window;; window *= 2) {
    const Measured measured = Collect(node, kind, window);
    // Samples are not exact in time, so a window that is a little too short is enough.
    if (measured.time < options_.window * 7 / 10) return std::nullopt;
    // The longest window judges with less work. A node that finishes so little in it is certainly
    // slow.
    const bool longest = window >= options_.window_max;
    const uint64_t work_min = longest ? options_.work_min / 5 : options_.work_min;
    if (measured.effort.work >= std::max(work_min, uint64_t{1})) {
      const auto units = static_cast<double>(measured.effort.work);
      return Cost{.microseconds = static_cast<double>(measured.effort.time.count()) / units,
                  .bytes = static_cast<double>(measured.effort.bytes) / units,
                  .window = std::chrono::round<std::chrono::seconds>(measured.time)};
    }
    if (longest || !measured.full) return std::nullopt;
  }
}

double StragglerJudge::Cost::For(const Cost& other) const {
  return bytes > 0 ? microseconds * std::max(other.bytes / bytes, 1.0) : microseconds;
}

std::vector<double> StragglerJudge::Peers(const Costs& costs, const std::string& name,
                                          size_t kind) {
  std::vector<double> peers;
  const std::optional<Cost>& own = costs.at(name)[kind];
  if (!own.has_value()) return peers;
  for (const auto& [peer, theirs] : costs) {
    if (peer != name && theirs[kind].has_value()) peers.push_back(theirs[kind]->For(*own));
  }
  return peers;
}

std::optional<double> StragglerJudge::Usual(const std::string& name, size_t kind, const Cost& cost,
                                            const std::vector<double>& peers) const {
  const auto node = nodes_.find(name);
  if (node == nodes_.end() || kind >= node->second.past.size()) return std::nullopt;
  const Past& past = node->second.past[kind];
  if (past.costs.size() < options_.history_min) return std::nullopt;
  std::vector<double> costs;
  for (const Cost& former : past.costs) costs.push_back(former.For(cost));
  const double own = Median(std::move(costs));
  if (peers.empty()) return kinds_[kind].alone ? std::optional(own) : std::nullopt;
  if (past.of_peer.size() < options_.history_min) return std::nullopt;
  // The node is slow only if it is slower than its own past and slower against its peer than
  // before. A peer that became faster does not make it slow.
  return std::max(own, peers[0] * Median({past.of_peer.begin(), past.of_peer.end()}));
}

std::optional<StragglerJudge::Verdict> StragglerJudge::Judge(const Costs& costs,
                                                             const std::string& name) const {
  std::optional<Verdict> worst;
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    const std::optional<Cost>& own = costs.at(name)[kind];
    if (!own.has_value()) continue;
    const std::vector<double> peers = Peers(costs, name, kind);
    Verdict verdict{.kind = kind,
                    .cost_us = own->microseconds,
                    .bytes = own->bytes,
                    .needed_ratio = options_.slow_ratio * kinds_[kind].ratio_factor,
                    .against = fmt::format("the median of its {} peers", peers.size()),
                    .window = own->window};
    if (peers.size() >= 2) {
      verdict.reference_us = Median(peers);
    } else {
      const std::optional<double> usual = Usual(name, kind, *own, peers);
      if (!usual.has_value()) continue;
      verdict.reference_us = *usual;
      verdict.against = "what it took before";
      if (peers.empty()) {
        verdict.needed_ratio =
            options_.alone_ratio * kinds_[kind].ratio_factor * kinds_[kind].alone_factor;
      }
    }
    if (verdict.reference_us <= 0) continue;
    verdict.ratio = verdict.cost_us / verdict.reference_us;
    const double excess = verdict.cost_us - verdict.reference_us;
    if (excess < static_cast<double>(options_.excess_min.count())) {
      verdict.ratio = std::min(verdict.ratio, 1.0);
    }
    if (!worst.has_value() ||
        verdict.ratio / verdict.needed_ratio > worst->ratio / worst->needed_ratio) {
      worst = verdict;
    }
  }
  return worst;
}

void StragglerJudge::Remember(const JobView& view, const Costs& costs, const std::string& name,
                              Node* state) {
  const auto& measured = costs.at(name);
  if (std::none_of(measured.begin(), measured.end(), [](const auto& c) { return c.has_value(); })) {
    return;
  }
  if (!state->well_since.has_value()) state->well_since = view.now;
  if (view.now - *state->well_since >= options_.forgive) {
    state->restarts = 0;
    state->cpu_given = false;
  }
  // The windows that are remembered must not overlap.
  if (view.now - state->history_at < options_.window) return;
  state->history_at = view.now;
  const auto push = [this](auto* history, const auto& value) {
    history->push_back(value);
    if (history->size() > options_.history_max) history->pop_front();
  };
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (!measured[kind].has_value()) continue;
    push(&state->past[kind].costs, *measured[kind]);
    const std::vector<double> peers = Peers(costs, name, kind);
    if (peers.size() == 1 && peers[0] > 0) {
      push(&state->past[kind].of_peer, measured[kind]->microseconds / peers[0]);
    }
  }
}

std::optional<Proposal> StragglerJudge::Act(const JobView& view, const NodeView& node,
                                            const Node& state, const Verdict& verdict) const {
  if (view.now - *state.slow_since < options_.hold) return std::nullopt;
  if (state.acted_at.has_value() && view.now - *state.acted_at < options_.grace) {
    return std::nullopt;
  }
  const std::optional<Span> span =
      SpanSince(node, view.now - verdict.window - std::chrono::seconds(1), options_.window / 2);
  if (!span.has_value()) return std::nullopt;
  const std::string what = kinds_[verdict.kind].name;
  Proposal proposal{
      .policy = policy_,
      .action = Action::kRestart,
      .target = node.name,
      .before = node.limits,
      .after = node.limits,
      .evidence = {{what, verdict.cost_us, "us", verdict.window},
                   {"the same of " + verdict.against, verdict.reference_us, "us", verdict.window},
                   {"ratio", verdict.ratio, "ratio", verdict.window},
                   {"CPU", span->cpus(), "cores", span->window()},
                   {"throttled", span->throttled(), "s/s", span->window()}}};
  if (verdict.bytes > 0) {
    proposal.evidence.push_back({"bytes per request", verdict.bytes, "bytes", verdict.window});
  }
  AddPressure("CPU pressure", span->end->cpu_pressure_percent, &proposal);
  proposal.because = fmt::format(
      "{}'s {} is {:.1f} times {}{} over {} s", node.name, what, verdict.ratio, verdict.against,
      verdict.bytes > 0 ? ", size for size," : "", verdict.window.count());
  if (!state.cpu_given && span->throttled() >= options_.throttled_min &&
      GiveCpu(view, node, *span, &proposal)) {
    return proposal;
  }
  if (state.restarts >= options_.restarts_max) return std::nullopt;
  proposal.because +=
      fmt::format(", {}: it is started again", state.cpu_given ? "although it was given more CPU"
                                               : span->throttled() >= options_.throttled_min
                                                   ? "and there is no more CPU for it"
                                                   : "and its CPU quota is not the reason");
  return proposal;
}

bool StragglerJudge::GiveCpu(const JobView& view, const NodeView& node, const Span& span,
                             Proposal* proposal) const {
  proposal->action = Action::kResize;
  Resources after = node.limits;
  const bool foreign = after.cpus <= 0 || span.cpus() < options_.foreign_quota * after.cpus;
  if (!foreign) {
    const Room room = RoomOf(view, node);
    after.cpus *= options_.cpu_factor;
    if (room.cpu_bound != Bound::kNone) after.cpus = std::min(after.cpus, room.most.cpus);
    if (after.cpus < options_.cpu_gain_min * node.limits.cpus) {
      proposal->action = Action::kRestart;
      return false;
    }
  }
  proposal->after = after;
  proposal->because += fmt::format(", and its quota held it back for {:.0f} % of the time: ",
                                   100 * span.throttled());
  proposal->because +=
      foreign
          ? std::string(
                "the quota in force is not the one that Muster set, so Muster sets its own again")
          : fmt::format("its CPU limit becomes {:.3g} cores", after.cpus);
  return true;
}

}  // namespace muster::scaler
