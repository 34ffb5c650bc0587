#include "scaler/decision/outcome_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "scaler/decision/event_drafts.h"
#include "scaler/model/orders.h"

namespace muster::scaler {
namespace {

/// The kernel rounds limits to pages.
constexpr double kMemoryRounding = 1 << 20;
constexpr double kCpuRounding = 0.005;

double SecondsBetween(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

Effect EffectOf(const rest::Event& event) {
  return AboutAction(event.action).effect;
}

bool IsRestart(const rest::Event& event) {
  return EffectOf(event) == Effect::kBack;
}

bool IsAt(const Resources& limits, const Resources& wanted) {
  const double bytes =
      static_cast<double>(limits.memory_bytes) - static_cast<double>(wanted.memory_bytes);
  return std::abs(limits.cpus - wanted.cpus) <= kCpuRounding && std::abs(bytes) <= kMemoryRounding;
}

/// The node runs, and its work has begun.
bool IsBack(const NodeView& node, TimePoint now) {
  if (node.state != NodeState::kRunning) return false;
  if (node.role != NodeRole::kWorker) return true;
  if (node.samples.empty()) return false;
  const WorkerTotals& worker = node.samples.back().worker;
  // A node without work also counts as back.
  const bool idle = worker.shards_held == 0 && now - node.started_at >= std::chrono::seconds(10);
  return worker.minibatches > 0 || idle;
}

bool AreWorkersAt(const JobView& view, double wanted) {
  double workers = 0;
  double running = 0;
  for (const NodeView& node : view.nodes) {
    if (node.role != NodeRole::kWorker) continue;
    ++workers;
    running += node.state == NodeState::kRunning ? 1 : 0;
  }
  return workers == wanted && running == wanted;
}

/// The newest end of a life that the decision should have improved. A restart should improve the
/// lives after it, any other action also the present one.
const NodeEnd* EndOf(const JobView& view, const rest::Event& event, uint32_t start) {
  const uint32_t first = IsRestart(event) ? start + 1 : start;
  const NodeEnd* found = nullptr;
  for (const NodeEnd& end : view.ends) {
    if (end.node == event.target && end.start >= first) found = &end;
  }
  return found;
}

std::string DoneText(const rest::Event& event, const NodeView* node) {
  const bool server = node != nullptr && node->role == NodeRole::kServer;
  const std::string& target = event.target;
  switch (EffectOf(event)) {
    case Effect::kBack:
      return fmt::format("{} {} again", target, server ? "serves" : "trains");
    case Effect::kLimits:
      return fmt::format("{} has its new limits", target);
    case Effect::kWorkers: {
      const auto workers = event.after.find("workers");
      return fmt::format("{:g} workers run", workers == event.after.end() ? 0 : workers->second);
    }
    case Effect::kLeft:
      if (target == "job") return "the job drains";
      return fmt::format("{} {}", target, server ? "has its snapshots" : "has left");
    default:
      return "the job has ended";
  }
}

}  // namespace

OutcomeWatch::What OutcomeWatch::WhatOf(const rest::Event& event) {
  if (FigureOf(event, kJoinedFigure).has_value()) return What::kByMaster;
  switch (EffectOf(event)) {
    case Effect::kNone:
      return What::kAtOnce;
    case Effect::kByMaster:
      return What::kByMaster;
    case Effect::kBack: {
      const bool speed = event.policy == "worker-straggler" || event.policy == "server-straggler";
      return speed ? What::kRate : What::kBack;
    }
    case Effect::kLimits: {
      const bool memory = LimitsOf(event.before).memory_bytes != LimitsOf(event.after).memory_bytes;
      return memory ? What::kMemory : What::kRate;
    }
    case Effect::kWorkers:
      return What::kRate;
    case Effect::kLeft:
      return event.target == "job" ? What::kJobDrains : What::kLeave;
    case Effect::kEnded:
      break;
  }
  return What::kJobEnds;
}

void OutcomeWatch::Open(const rest::Event& event, TimePoint at) {
  const What what = WhatOf(event);
  // Other actions in the same time change the same figures.
  for (auto& [id, other] : watches_) {
    if (other.what == What::kRate && !IsSilent(what)) other.overlapped_by = event.id;
  }
  watches_[event.id] = {.event = event,
                        .what = what,
                        .at = at,
                        .start = static_cast<uint32_t>(FigureOf(event, kStartFigure).value_or(0)),
                        .before = LimitsOf(event.before),
                        .after = LimitsOf(event.after),
                        .rate_before = FigureOf(event, kRateFigure)};
}

void OutcomeWatch::Adopt(const rest::Event& event, TimePoint at, TimePoint now) {
  Open(event, at);
  watches_.at(event.id).adopted_at = now;
}

std::vector<rest::Event> OutcomeWatch::Step(const JobView& view) {
  if (!readings_.empty() && view.records_trained < readings_.back().records) readings_.clear();
  readings_.push_back({.at = view.now,
                       .records = view.records_trained,
                       .training = view.activity == Activity::kTraining});
  while (view.now - readings_.front().at > options_.rate_window) readings_.pop_front();
  std::vector<rest::Event> outcomes;
  for (auto watch = watches_.begin(); watch != watches_.end();) {
    const What what = watch->second.what;
    Outcome outcome = IsSilent(what) ? std::nullopt : Look(view, &watch->second);
    // Orders that take effect at once would have failed by now.
    const bool late = what == What::kAtOnce || (what == What::kByMaster &&
                                                view.now - watch->second.at >= options_.answer_max);
    const bool over = late || outcome.has_value();
    if (outcome.has_value()) outcomes.push_back(*std::move(outcome));
    watch = over ? watches_.erase(watch) : std::next(watch);
  }
  return outcomes;
}

std::optional<rest::Event> OutcomeWatch::Fail(uint64_t event_id, const std::string& why) {
  const auto found = watches_.find(event_id);
  if (found == watches_.end()) return std::nullopt;
  rest::Event outcome =
      MakeOutcome(found->second, "unknown", fmt::format("it could not be done: {}", why));
  watches_.erase(found);
  return outcome;
}

std::optional<double> OutcomeWatch::Rate() const {
  return RateSince(TimePoint::min());
}

std::optional<double> OutcomeWatch::RateSince(TimePoint from) const {
  if (readings_.empty()) return std::nullopt;
  const Reading& begin = readings_.front();
  const Reading& end = readings_.back();
  const bool training = std::ranges::all_of(readings_, &Reading::training);
  // Steps are not exact in time, so a slightly short window is enough.
  if (!training || begin.at < from || end.at - begin.at < options_.rate_window * 9 / 10) {
    return std::nullopt;
  }
  return static_cast<double>(end.records - begin.records) / SecondsBetween(begin.at, end.at);
}

bool OutcomeWatch::HasBegun(const JobView& view, const Watch& watch) {
  const rest::Event& event = watch.event;
  const auto workers = event.after.find("workers");
  if (workers != event.after.end()) {
    const auto planned = std::ranges::count(view.nodes, NodeRole::kWorker, &NodeView::role);
    return static_cast<double>(planned) == workers->second;
  }
  const NodeView* node = FindNode(view, event.target);
  if (node == nullptr) return true;
  if (EffectOf(event) == Effect::kLimits) return IsAt(node->limits, watch.after);
  const bool runs = node->state == NodeState::kRunning || node->state == NodeState::kStarting ||
                    node->state == NodeState::kLost;
  return !runs || node->drained || node->start > watch.start;
}

bool OutcomeWatch::HasEffect(const JobView& view, const Watch& watch) {
  const rest::Event& event = watch.event;
  const NodeView* node = FindNode(view, event.target);
  switch (watch.what) {
    case What::kJobDrains:
      return view.activity == Activity::kDraining || view.activity == Activity::kOver;
    case What::kJobEnds:
      return view.activity == Activity::kOver;
    case What::kLeave:
      if (node == nullptr || node->state == NodeState::kExited) return true;
      return node->drained || node->start > watch.start;
    default:
      break;
  }
  const auto workers = event.after.find("workers");
  if (workers != event.after.end()) return AreWorkersAt(view, workers->second);
  if (node == nullptr) return false;
  if (IsRestart(event)) return node->start > watch.start && IsBack(*node, view.now);
  const bool lives = node->state == NodeState::kRunning || node->state == NodeState::kStarting ||
                     node->state == NodeState::kLost;
  if (!lives || node->samples.empty() || !IsAt(node->limits, watch.after)) return false;
  const uint64_t enforced = node->samples.back().memory_limit_bytes;
  return enforced == 0 || IsAt({.cpus = watch.after.cpus, .memory_bytes = enforced}, watch.after);
}

OutcomeWatch::Outcome OutcomeWatch::Look(const JobView& view, Watch* watch) const {
  if (!watch->done_at.has_value() && HasEffect(view, *watch)) watch->done_at = view.now;
  if (view.activity == Activity::kOver) return AtJobsEnd(view, *watch);
  const std::string& target = watch->event.target;
  if (const NodeEnd* end = EndOf(view, watch->event, watch->start);
      end != nullptr && watch->what != What::kLeave) {
    const bool memory =
        end->cause == EndCause::kKernelOutOfMemory || end->cause == EndCause::kOwnOutOfMemory;
    if (watch->what == What::kMemory && memory) {
      return MakeOutcome(*watch, "no-change",
                         fmt::format("{} was killed for its memory even so", target));
    }
    if (end->cause == EndCause::kClean || end->cause == EndCause::kAsked) {
      return AtGoodEnd(view, *watch, *end);
    }
    return MakeOutcome(
        *watch, watch->what == What::kBack ? "no-change" : "unknown",
        fmt::format("{:.1f} s after the decision, {} ended{} ({}, {})",
                    SecondsBetween(watch->at, view.now), target,
                    IsRestart(watch->event) ? " again" : "", ToString(end->cause), end->exit));
  }
  if (watch->done_at.has_value()) return AfterEffect(view, watch);
  if (watch->adopted_at.has_value() && view.master_heard &&
      view.now - *watch->adopted_at >= options_.adopt_grace && !HasBegun(view, *watch)) {
    return MakeOutcome(*watch, "unknown", "the scaler died before it was done");
  }
  if (view.now - watch->at < options_.effect_max) return std::nullopt;
  return MakeOutcome(
      *watch, "unknown",
      fmt::format("within {} s, it was not seen that {}", options_.effect_max.count(),
                  DoneText(watch->event, FindNode(view, target))));
}

OutcomeWatch::Outcome OutcomeWatch::AtGoodEnd(const JobView& view, const Watch& watch,
                                              const NodeEnd& end) const {
  if (watch.done_at.has_value() && watch.what == What::kBack) return JudgeDone(view, watch);
  if (watch.done_at.has_value() && watch.what == What::kMemory) {
    return JudgeUsage(watch, "until its end");
  }
  return MakeOutcome(
      watch, "unknown",
      fmt::format("{} ended {} before more could be seen", watch.event.target,
                  end.cause == EndCause::kClean ? "by itself, with nothing left to do,"
                                                : "as it was asked to"));
}

OutcomeWatch::Outcome OutcomeWatch::AfterEffect(const JobView& view, Watch* watch) const {
  switch (watch->what) {
    case What::kBack:
      if (view.now - *watch->done_at < options_.settle) return std::nullopt;
      return JudgeDone(view, *watch);
    case What::kRate:
      return JudgeRate(view, *watch);
    case What::kMemory:
      return JudgeMemory(view, watch);
    default:
      return JudgeDone(view, *watch);
  }
}

OutcomeWatch::Outcome OutcomeWatch::AtJobsEnd(const JobView& view, const Watch& watch) const {
  const bool measured = watch.what == What::kRate;
  if (watch.done_at.has_value() && watch.what == What::kMemory) {
    return JudgeUsage(watch, "until the job's end");
  }
  if (watch.done_at.has_value() && !measured) return JudgeDone(view, watch);
  return MakeOutcome(watch, "unknown",
                     measured ? "the job ended before its rate could be compared"
                              : fmt::format("the job ended before it was seen that {}",
                                            DoneText(watch.event, nullptr)));
}

OutcomeWatch::Outcome OutcomeWatch::JudgeDone(const JobView& view, const Watch& watch) const {
  const double seconds = SecondsBetween(watch.at, *watch.done_at);
  const std::string done = DoneText(watch.event, FindNode(view, watch.event.target));
  rest::Event outcome =
      MakeOutcome(watch, "helped", fmt::format("{}, after {:.1f} s", done, seconds));
  outcome.evidence = {{"time to it", seconds, "s", 0}};
  const std::optional<double> rate = RateSince(*watch.done_at);
  if (watch.what == What::kBack) AddRates(watch, rate, &outcome);
  return outcome;
}

OutcomeWatch::Outcome OutcomeWatch::JudgeRate(const JobView& view, const Watch& watch) const {
  const std::string done = DoneText(watch.event, FindNode(view, watch.event.target));
  if (!watch.rate_before.has_value() || *watch.rate_before <= 0) {
    return MakeOutcome(watch, "unknown",
                       fmt::format("{}, but the rate before the change is not known, because the "
                                   "job had not trained undisturbed for {} s",
                                   done, options_.rate_window.count()));
  }
  const std::optional<double> rate = RateSince(*watch.done_at + options_.settle);
  if (!rate.has_value()) {
    if (view.now - *watch.done_at < options_.measure_max) return std::nullopt;
    return MakeOutcome(
        watch, "unknown",
        fmt::format("{}, but within {} s after that the job has not trained "
                    "undisturbed for {} s",
                    done, options_.measure_max.count(), options_.rate_window.count()));
  }
  const double change = *rate / *watch.rate_before - 1;
  const char* verdict = change >= options_.change_min    ? "helped"
                        : change <= -options_.change_min ? "worse"
                                                         : "no-change";
  std::string because = fmt::format("{}; the job's rate was {} records/s and is {}, {:+.0f} %",
                                    done, CountText(std::llround(*watch.rate_before)),
                                    CountText(std::llround(*rate)), 100 * change);
  if (watch.overlapped_by > 0) {
    because += fmt::format(" (event {} falls into the same time)", watch.overlapped_by);
  }
  rest::Event outcome = MakeOutcome(watch, verdict, std::move(because));
  outcome.evidence = {{"time to it", SecondsBetween(watch.at, *watch.done_at), "s", 0}};
  AddRates(watch, rate, &outcome);
  return outcome;
}

OutcomeWatch::Outcome OutcomeWatch::JudgeMemory(const JobView& view, Watch* watch) const {
  const NodeView* node = FindNode(view, watch->event.target);
  if (node != nullptr && !node->samples.empty()) {
    watch->memory_most = std::max(watch->memory_most, node->samples.back().memory_bytes);
  }
  const bool beyond =
      watch->before.memory_bytes > 0 && watch->memory_most > watch->before.memory_bytes;
  const auto watched = view.now - *watch->done_at;
  if (!beyond && watched < options_.memory_watch) return std::nullopt;
  return JudgeUsage(*watch,
                    fmt::format("{:.0f} s long", SecondsBetween(*watch->done_at, view.now)));
}

OutcomeWatch::Outcome OutcomeWatch::JudgeUsage(const Watch& watch,
                                               const std::string& how_long) const {
  const uint64_t former = watch.before.memory_bytes;
  const std::string used =
      fmt::format("{} used up to {}", watch.event.target, BytesText(watch.memory_most));
  const std::string limit = BytesText(watch.after.memory_bytes);
  std::string verdict = "helped";
  std::string because = fmt::format("{} of its limit of {}, {}", used, limit, how_long);
  if (former > 0 && watch.memory_most > former) {
    because = fmt::format("{} of its limit of {}: the former one of {} would have killed it", used,
                          limit, BytesText(former));
  } else if (former > 0 && former < watch.after.memory_bytes) {
    verdict = "no-change";
    because = fmt::format("{}, {}: the former limit of {} would have been enough so far", used,
                          how_long, BytesText(former));
  }
  rest::Event outcome = MakeOutcome(watch, verdict, std::move(because));
  outcome.evidence = {{"most memory used", static_cast<double>(watch.memory_most), "bytes", 0},
                      {"memory limit", static_cast<double>(watch.after.memory_bytes), "bytes", 0}};
  return outcome;
}

void OutcomeWatch::AddRates(const Watch& watch, std::optional<double> rate,
                            rest::Event* outcome) const {
  const auto window = static_cast<double>(options_.rate_window.count());
  if (watch.rate_before.has_value()) {
    outcome->evidence.push_back({"rate before", *watch.rate_before, "records/s", window});
  }
  if (rate.has_value()) outcome->evidence.push_back({"rate after", *rate, "records/s", window});
}

rest::Event OutcomeWatch::MakeOutcome(const Watch& watch, const std::string& verdict,
                                      std::string because) {
  return {.kind = "outcome",
          .policy = watch.event.policy,
          .target = watch.event.target,
          .action = watch.event.action,
          .because = std::move(because),
          .cause_id = watch.event.id,
          .verdict = verdict};
}

}  // namespace muster::scaler
