#include "scaler/decision/decider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "job/thresholds.h"
#include "scaler/decision/event_drafts.h"
#include "scaler/decision/policy_list.h"

namespace muster::scaler {
namespace {

constexpr const char* kSupervision = "supervision";

/// The order was carried out, so it gets an outcome.
bool IsDeed(const rest::Event& event) {
  return (event.kind == "decision" || event.kind == "action") && !event.dry_run &&
         OutcomeWatch::IsMeasured(event);
}

/// True if this outcome says that the policy misjudged the job. Changes of the number of workers
/// are an exception: worker-count measures each number of workers itself, and takes a worse one
/// back.
bool HoldsBack(const rest::Event& event) {
  return event.kind == "outcome" && event.verdict == "worse" && !event.policy.empty() &&
         event.action != ScaleWorkers::kAbout.name;
}

/// A draining job ends anyway and lets its workers go, so it is too late to help them. Only servers
/// still have something to save.
bool IsMoot(const JobView& view, const Proposal& proposal) {
  if (view.activity != Activity::kDraining) return false;
  const NodeView* node = FindNode(view, proposal.target);
  return node == nullptr || node->role == NodeRole::kWorker;
}

uint32_t WorkersIn(const std::map<std::string, double>& figures) {
  const auto found = figures.find("workers");
  return found == figures.end() ? 0 : static_cast<uint32_t>(std::max(found->second, 0.0));
}

/// The action of an event, as views show it. None if policies have no such action.
std::optional<ActionTaken> TakenOf(const rest::Event& event, const std::string& action_name,
                                   const std::string& target, TimePoint at) {
  const std::optional<Action> action = ActionOf(action_name);
  if (!action.has_value()) return std::nullopt;
  return ActionTaken{.policy = event.policy,
                     .target = target,
                     .action = *action,
                     .at = at,
                     .workers_before = WorkersIn(event.before),
                     .workers_after = WorkersIn(event.after)};
}

Ordered WithEvent(const rest::Event& event, const Order& order, TimePoint now) {
  return {.event_id = event.id,
          .order = order,
          .taken = TakenOf(event, ActionName(order), TargetOf(order), now)};
}

}  // namespace

Decider::Decider(const Options& options, EventSink sink)
    : options_(options),
      sink_(std::move(sink)),
      policies_(MakePolicies(options.policies)),
      arbiter_(options.arbiter),
      outcomes_(options.outcomes) {
  for (const std::string& policy : options.paused) arbiter_.Pause(policy);
}

void Decider::Adopt(const std::vector<rest::Event>& events, WallTime run_began, WallTime wall,
                    TimePoint now) {
  std::set<std::string> intervene;
  for (const KnownPolicy& policy : KnownPolicies()) {
    if (policy.intervenes) intervene.emplace(policy.name);
  }
  std::set<uint64_t> measured;
  for (const rest::Event& event : events) {
    if (event.kind == "outcome") measured.insert(event.cause_id);
  }
  for (const rest::Event& event : events) {
    const WallTime at(event.wall_us);
    const bool of_this_run = at >= run_began;
    if (!of_this_run && LimitsOf(event.after) != Resources{}) earlier_limits_[event.target] = event;
    if (of_this_run && event.kind == "exit") {
      exits_[event.target] = {
          .start = static_cast<uint32_t>(FigureOf(event, kStartFigure).value_or(0)),
          .event_id = event.id};
    }
    const WallTime age = std::max(wall - at, WallTime(0));
    if (of_this_run && HoldsBack(event)) arbiter_.HoldBack(event.policy, now - age);
    if (of_this_run && !event.dry_run && event.kind != "outcome" && event.kind != "note" &&
        event.action == ScaleWorkers::kAbout.name) {
      adopted_scale_ = TakenOf(event, event.action, event.target, now - age);
    }
    if (of_this_run && event.kind == "decision") {
      CountDecision(event);
      // A restart of the scaler does not repeat an order that was carried out.
      const std::optional<Action> action = ActionOf(event.action);
      if (action.has_value() && event.policy != kSupervision) {
        arbiter_.Adopt({.policy = event.policy,
                        .action = *action,
                        .kind = intervene.contains(event.policy) ? Proposal::Kind::kIntervention
                                                                 : Proposal::Kind::kRepair,
                        .target = event.target},
                       now - age);
      }
    }
    if (of_this_run && event.kind == "note" && !event.policy.empty()) {
      ++counts_[event.policy].refused;
    }
    if (!IsDeed(event) || measured.contains(event.id)) continue;
    if (of_this_run && age <= options_.adopt_max) {
      NoteAsked(event);
      outcomes_.Adopt(event, now - age, now);
      continue;
    }
    sink_({.kind = "outcome",
           .policy = event.policy,
           .target = event.target,
           .action = event.action,
           .because = "the scaler ended before this was measured",
           .cause_id = event.id,
           .verdict = "unknown"});
  }
}

std::vector<Ordered> Decider::Step(const JobView& view) {
  TellExits(view);
  for (rest::Event& outcome : outcomes_.Step(view)) {
    if (HoldsBack(outcome)) arbiter_.HoldBack(outcome.policy, view.now);
    sink_(std::move(outcome));
  }
  if (view.activity == Activity::kOver) return {};
  std::vector<Proposal> proposals = StepAll(policies_, view);
  std::erase_if(proposals, [&](const Proposal& proposal) { return IsMoot(view, proposal); });
  std::vector<Ordered> orders;
  for (const Decision& decision : arbiter_.Decide(std::move(proposals), view)) {
    const Proposal& proposal = decision.proposal;
    const auto exit = exits_.find(proposal.ended);
    rest::Event event = DecisionEvent(decision, exit == exits_.end() ? 0 : exit->second.event_id);
    if (decision.verdict == Decision::Verdict::kRefused) {
      ++counts_[proposal.policy].refused;
      sink_(std::move(event));
      continue;
    }
    const rest::Event* given = GivenBefore(event, view);
    event = given != nullptr ? *given : sink_(WithFigures(std::move(event), view));
    CountDecision(event);
    if (decision.verdict == Decision::Verdict::kDryRun) continue;
    if (given == nullptr) Follow(event, view.now);
    orders.push_back(WithEvent(event, OrderOf(proposal, view), view.now));
  }
  return orders;
}

Decider::Taken Decider::Take(const Granted& granted, const JobView& view) {
  Taken taken{.event = sink_(WithFigures(granted.event, view))};
  const rest::Event& event = taken.event;
  Follow(event, view.now);
  if (const auto* pause = std::get_if<SetPaused>(&granted.order)) {
    pause->paused ? arbiter_.Pause(pause->policy) : arbiter_.Resume(pause->policy);
  }
  taken.orders = Hold(event, view);
  if (!IsMasters(granted.order)) taken.orders.push_back(WithEvent(event, granted.order, view.now));
  return taken;
}

std::vector<Ordered> Decider::Hold(const rest::Event& event, const JobView& view) {
  if (event.action == "scale") {
    return HoldWorkers(
        event.id, "a person chose the number of workers, so the policy does not change it", view);
  }
  const NodeView* node = FindNode(view, event.target);
  if (event.action != "drain" || node == nullptr || node->role != NodeRole::kWorker) return {};
  return HoldWorkers(
      event.id,
      fmt::format("a person sent {} away, so the policy does not replace it", event.target), view);
}

std::vector<Ordered> Decider::SentAway(const std::string& worker, const JobView& view) {
  return HoldWorkers(
      0,
      fmt::format("an order to the master sent {} away, so the policy does not replace it", worker),
      view);
}

std::vector<Ordered> Decider::HoldWorkers(uint64_t cause_id, const std::string& why,
                                          const JobView& view) {
  const std::string policy = WorkerCountPolicy::kName;
  const bool may_change = view.workers_min < view.workers_max;
  if (!may_change || arbiter_.paused().contains(policy)) return {};
  const rest::Event pause =
      sink_({.kind = "action",
             .target = policy,
             .action = "pause-policy",
             .because = fmt::format("{} until `muster policies resume {}`", why, policy),
             .cause_id = cause_id});
  arbiter_.Pause(policy);
  return {WithEvent(pause, SetPaused{policy}, view.now)};
}

void Decider::Tell(Action action, const std::string& target, const std::string& because,
                   const JobView& view) {
  if (action == Action::kStopJob && std::exchange(stopping_, true)) return;
  const NodeView* node = FindNode(view, target);
  // The keeper repeats the same report. It is new only for the next life of the node.
  const std::string key =
      fmt::format("{}/{}/{}", ToString(action), target, node == nullptr ? 0 : node->start);
  if (!supervised_.insert(key).second) return;
  const auto exit = exits_.find(target);
  const bool ended = exit != exits_.end() && node != nullptr && exit->second.start == node->start;
  rest::Event event = sink_(WithFigures({.kind = "decision",
                                         .policy = kSupervision,
                                         .target = target,
                                         .action = ToString(action),
                                         .because = because,
                                         .cause_id = ended ? exit->second.event_id : 0},
                                        view));
  CountDecision(event);
  // The order does not end a node that has already ended.
  if (ended) {
    outcomes_.Open(event, view.now);
  } else {
    Follow(event, view.now);
  }
}

void Decider::Fail(uint64_t event_id, const std::string& why) {
  std::optional<rest::Event> outcome = outcomes_.Fail(event_id, why);
  if (outcome.has_value()) sink_(*std::move(outcome));
}

std::vector<rest::Policy> Decider::policies() const {
  std::vector<rest::Policy> policies = DescribePolicies(options_.policies, options_.arbiter);
  for (rest::Policy& policy : policies) {
    policy.paused = arbiter_.paused().contains(policy.name);
    const auto counts = counts_.find(policy.name);
    if (counts == counts_.end()) continue;
    policy.decisions = counts->second.decisions;
    policy.refused = counts->second.refused;
    policy.last_event_id = counts->second.last_event_id;
  }
  return policies;
}

void Decider::TellExits(const JobView& view) {
  for (const NodeEnd& end : view.ends) {
    Exit& known = exits_[end.node];
    // A restarted scaler, for example, reports an end twice.
    if (known.event_id > 0 && end.start <= known.start) continue;
    rest::Event event = ExitEvent(end);
    event.cause_id = CauseOfExit(end);
    known = {.start = end.start, .event_id = sink_(std::move(event)).id};
  }
}

uint64_t Decider::CauseOfExit(const NodeEnd& end) {
  if (end.cause != EndCause::kAsked) return 0;
  std::vector<std::string> targets = {end.node};
  if (end.role == NodeRole::kWorker) targets.push_back("workers");
  for (const std::string& target : targets) {
    const auto asked = asked_.find(target);
    if (asked == asked_.end() || asked->second.nodes == 0) continue;
    --asked->second.nodes;
    return asked->second.event_id;
  }
  const auto job = asked_.find("job");
  return job == asked_.end() ? 0 : job->second.event_id;
}

void Decider::CountDecision(const rest::Event& event) {
  Counts& counts = counts_[event.policy];
  ++counts.decisions;
  counts.last_event_id = event.id;
}

const rest::Event* Decider::GivenBefore(const rest::Event& event, const JobView& view) const {
  const NodeView* node = FindNode(view, event.target);
  const auto earlier = earlier_limits_.find(event.target);
  if (node == nullptr || node->start > 0 || earlier == earlier_limits_.end()) return nullptr;
  const rest::Event& before = earlier->second;
  const bool same = before.kind == event.kind && before.policy == event.policy &&
                    before.action == event.action && before.after == event.after &&
                    before.dry_run == event.dry_run;
  return same ? &before : nullptr;
}

void Decider::Follow(const rest::Event& event, TimePoint at) {
  outcomes_.Open(event, at);
  NoteAsked(event);
}

void Decider::NoteAsked(const rest::Event& event) {
  if (event.action == FailJob::kAbout.name) stopping_ = true;
  const ActionAbout about = AboutAction(event.action);
  if (about.ends) asked_[event.target] = {.event_id = event.id, .nodes = 1};
  if (about.effect != Effect::kWorkers) return;
  const uint32_t before = WorkersIn(event.before);
  asked_["workers"] = {.event_id = event.id,
                       .nodes = before - std::min(before, WorkersIn(event.after))};
}

rest::Event Decider::WithFigures(rest::Event event, const JobView& view) const {
  if (!AboutAction(event.action).notes_before) return event;
  if (const NodeView* node = FindNode(view, event.target)) {
    AddFigure({kStartFigure, static_cast<double>(node->start), "", 0}, &event);
  }
  const std::optional<double> rate = outcomes_.Rate();
  if (rate.has_value()) {
    const auto window = static_cast<double>(options_.outcomes.rate_window.count());
    AddFigure({kRateFigure, *rate, "records/s", window}, &event);
  }
  return event;
}

Order Decider::OrderOf(const Proposal& proposal, const JobView& view) const {
  const NodeView* node = FindNode(view, proposal.target);
  const Resources* limits = std::get_if<Resources>(&proposal.after);
  switch (proposal.action) {
    case Action::kRestart: {
      // The policy crash-loop answers programs that end by themselves. These ends stay counted, but
      // kills do not.
      RestartNode restart{.node = proposal.target,
                          .why = proposal.because,
                          .charged = proposal.policy == "crash-loop",
                          .hangs = proposal.policy == "hang"};
      if (limits != nullptr && node != nullptr && *limits != node->limits) {
        restart.limits = *limits;
      }
      if (node != nullptr) restart.only_start = node->start;
      return restart;
    }
    case Action::kResize:
      return ResizeNode::To(proposal.target, limits == nullptr ? Resources{} : *limits);
    case Action::kScale:
      return ScaleWorkers{std::get<uint32_t>(proposal.after)};
    case Action::kDrain:
      return EndNode{proposal.target};
    case Action::kDumpStacks:
      return DumpStacks{proposal.target};
    case Action::kStopJob:
      break;
  }
  return FailJob{proposal.because + proposal.details};
}

}  // namespace muster::scaler
