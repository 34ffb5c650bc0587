#include "scaler/policy/arbiter.h"

#include <fmt/format.h>

#include "base/text.h"

#include <algorithm>

namespace muster::scaler {
namespace {

constexpr std::chrono::hours kHour{1};

int Rank(const Proposal& proposal) {
  if (proposal.action == Action::kStopJob) return 0;
  return proposal.kind == Proposal::Kind::kRepair ? 1 : 2;
}

bool IsDone(const JobView& view, const Proposal& proposal, uint32_t start) {
  if (const uint32_t* workers = std::get_if<uint32_t>(&proposal.after)) {
    uint32_t running = 0;
    uint32_t planned = 0;
    for (const NodeView& node : view.nodes) {
      if (node.role != NodeRole::kWorker) continue;
      ++planned;
      running += node.state == NodeState::kRunning ? 1 : 0;
    }
    return planned == *workers && running == *workers;
  }
  const NodeView* node = FindNode(view, proposal.target);
  if (node == nullptr) return true;
  switch (proposal.action) {
    case Action::kRestart:
      return node->start > start && node->state == NodeState::kRunning;
    case Action::kResize:
      return node->limits == std::get<Resources>(proposal.after);
    case Action::kDrain:
      return node->state == NodeState::kExited;
    default:
      return true;  // it takes effect at once
  }
}

}  // namespace

std::vector<Decision> Arbiter::Decide(std::vector<Proposal> proposals, const JobView& view) {
  CloseWhatIsDone(view);
  pending_.clear();
  std::stable_sort(proposals.begin(), proposals.end(),
                   [](const Proposal& a, const Proposal& b) { return Rank(a) < Rank(b); });
  std::vector<Decision> decisions;
  for (Proposal& proposal : proposals) {
    const auto open = open_.find(proposal.target);
    // A policy repeats its proposal until it sees the effect.
    if (open != open_.end() && KeyOf(open->second.proposal) == KeyOf(proposal) &&
        proposal.kind == Proposal::Kind::kIntervention) {
      continue;
    }
    Decision decision{.at = view.now};
    std::optional<std::string> refusal = Refusal(view, &proposal, &decision.remark);
    if (refusal.has_value()) {
      if (ToldLately(proposal, *refusal, view.now)) continue;
      decision.verdict = Decision::Verdict::kRefused;
      decision.remark = *std::move(refusal);
    } else {
      told_.erase(KeyOf(proposal));
      decision.verdict = options_.dry_run ? Decision::Verdict::kDryRun : Decision::Verdict::kAct;
      Grant(view, proposal);
    }
    decision.proposal = std::move(proposal);
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

void Arbiter::Adopt(const Proposal& proposal, TimePoint at) {
  last_[KeyOf(proposal)] = at;
  if (proposal.kind == Proposal::Kind::kIntervention) interventions_.push_back(at);
}

void Arbiter::HoldBack(const std::string& policy, TimePoint at) {
  const auto [held, first] = worse_.emplace(policy, at);
  if (!first) held->second = std::max(held->second, at);
}

std::optional<std::string> Arbiter::Refusal(const JobView& view, Proposal* proposal,
                                            std::string* remark) {
  if (stopping_) return "the job is being stopped";
  if (paused_.contains(proposal->policy)) {
    return fmt::format("the policy {} is paused; `muster policies` resumes it", proposal->policy);
  }
  if (proposal->kind == Proposal::Kind::kIntervention) {
    std::optional<std::string> refusal = OverRate(view, *proposal);
    if (refusal.has_value()) return refusal;
  }
  if (std::holds_alternative<Resources>(proposal->after)) {
    return FitLimits(view, proposal, remark);
  }
  if (std::holds_alternative<uint32_t>(proposal->after)) return FitWorkers(view, proposal, remark);
  return std::nullopt;
}

std::optional<std::string> Arbiter::OverRate(const JobView& view, const Proposal& proposal) const {
  const auto open = open_.find(proposal.target);
  if (open != open_.end()) {
    return fmt::format("a {} of {} by {} is still in progress",
                       ToString(open->second.proposal.action), proposal.target,
                       open->second.proposal.policy);
  }
  const auto worse = worse_.find(proposal.policy);
  if (worse != worse_.end() && view.now - worse->second < options_.worse_hold) {
    return fmt::format("what {} did last made things worse, and it is held back for {} s",
                       proposal.policy, options_.worse_hold.count());
  }
  const auto own = options_.cooldowns.find(proposal.policy);
  const std::chrono::seconds cooldown =
      own != options_.cooldowns.end() ? own->second : options_.cooldown;
  const auto last = last_.find(KeyOf(proposal));
  if (last != last_.end() && view.now - last->second < cooldown) {
    return fmt::format("{} did the same to {} less than {} s ago", proposal.policy, proposal.target,
                       cooldown.count());
  }
  if (interventions_.size() >= options_.interventions_per_hour) {
    return fmt::format("there were {} interventions in the last hour, and no more are allowed",
                       interventions_.size());
  }
  return std::nullopt;
}

std::optional<std::string> Arbiter::FitLimits(const JobView& view, Proposal* proposal,
                                              std::string* remark) const {
  const NodeView* node = FindNode(view, proposal->target);
  if (node == nullptr) return fmt::format("there is no node {}", proposal->target);
  const Room room = RoomOf(view, *node, pending_);
  Resources& after = std::get<Resources>(proposal->after);
  const Resources wanted = after;
  after.cpus = std::max(after.cpus, after.cpus > 0 ? node->min.cpus : 0);
  if (after.memory_bytes > 0) {
    after.memory_bytes = std::max(after.memory_bytes, node->min.memory_bytes);
    if (room.memory_bound != Bound::kNone) {
      after.memory_bytes = std::min(after.memory_bytes, room.most.memory_bytes);
    }
  }
  if (after.cpus > 0 && room.cpu_bound != Bound::kNone) {
    after.cpus = std::min(after.cpus, room.most.cpus);
  }
  if (after == wanted) return std::nullopt;
  const Bound bound = after.memory_bytes < wanted.memory_bytes ? room.memory_bound
                      : after.cpus < wanted.cpus               ? room.cpu_bound
                                                               : Bound::kNone;
  if (bound == Bound::kNone) {
    *remark = fmt::format("raised to the minimum of {}: {}", node->name, ToString(after));
    return std::nullopt;
  }
  const std::string cut = fmt::format("{} are wanted, but {} allows only {}", ToString(wanted),
                                      ToString(bound, node->role), ToString(after));
  const bool changes = after != node->limits;
  if (!changes && proposal->action == Action::kResize) return cut + ", which the node has already";
  *remark = cut;
  return std::nullopt;
}

std::optional<std::string> Arbiter::FitWorkers(const JobView& view, Proposal* proposal,
                                               std::string* remark) const {
  uint32_t& after = std::get<uint32_t>(proposal->after);
  const uint32_t wanted = after;
  const uint32_t in_range =
      std::clamp(wanted, view.workers_min, std::max(view.workers_min, view.workers_max));
  const WorkerRoom room = RoomForWorkers(view, in_range, pending_);
  after = room.most;
  if (after == wanted) return std::nullopt;
  const std::string limit = room.bound == Bound::kNone ? "the job file's range of worker counts"
                                                       : ToString(room.bound, NodeRole::kWorker);
  const std::string cut = fmt::format("{} wanted, but {} allows {}",
                                      CountText(wanted, "worker is", "workers are"), limit, after);
  const auto now = static_cast<uint32_t>(std::ranges::count_if(
      view.nodes, [](const NodeView& node) { return node.role == NodeRole::kWorker; }));
  if (after == now) return cut + ", which is the number already";
  *remark = cut;
  return std::nullopt;
}

void Arbiter::Grant(const JobView& view, const Proposal& proposal) {
  last_[KeyOf(proposal)] = view.now;
  if (proposal.kind == Proposal::Kind::kIntervention) interventions_.push_back(view.now);
  if (const Resources* after = std::get_if<Resources>(&proposal.after)) {
    pending_[proposal.target] = *after;
  }
  // A dry run leaves no action in progress. Its cooldown is noted above.
  if (options_.dry_run) return;
  if (proposal.action == Action::kStopJob) stopping_ = true;
  const NodeView* node = FindNode(view, proposal.target);
  if (proposal.action == Action::kDumpStacks) return;
  open_[proposal.target] = {
      .proposal = proposal, .start = node == nullptr ? 0 : node->start, .at = view.now};
}

void Arbiter::CloseWhatIsDone(const JobView& view) {
  for (auto open = open_.begin(); open != open_.end();) {
    const auto& [target, action] = *open;
    const bool over =
        view.now - action.at >= options_.open_max || IsDone(view, action.proposal, action.start);
    open = over ? open_.erase(open) : std::next(open);
  }
  while (!interventions_.empty() && view.now - interventions_.front() >= kHour) {
    interventions_.pop_front();
  }
}

bool Arbiter::ToldLately(const Proposal& proposal, const std::string& refusal, TimePoint now) {
  auto& [told, at] = told_[KeyOf(proposal)];
  if (told == refusal && now - at < options_.refusal_repeat) return true;
  told = refusal;
  at = now;
  return false;
}

}  // namespace muster::scaler
