#include "scaler/nodes/node_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster::scaler {
namespace {

constexpr std::chrono::milliseconds kAskAgain{1'000};
/// Steps come every 100 ms or so; this long without one, the process stood still.
constexpr std::chrono::milliseconds kPauseMin{2'000};

}  // namespace

NodeKeeper::NodeKeeper(const KeeperOptions& options, const Plan& plan)
    : options_(options),
      run_id_(plan.run_id),
      began_wall_us_(plan.began_wall_us),
      workers_(plan.workers),
      paused_(plan.paused),
      failure_(plan.failure) {
  // The scaler before us may have died before the master heard of it.
  if (failure_.has_value()) stage_ = Stage::kFailing;
  for (const auto& [name, node] : plan.nodes) {
    nodes_.emplace(name, KeeperNode(name, options_.restarts, node));
  }
}

template <typename State>
void NodeKeeper::AdvanceAll() {
  for (auto& [name, node] : nodes_) {
    if (State* const state = std::get_if<State>(&node.state)) Advance(&node, state);
  }
}

std::vector<KeeperEffect> NodeKeeper::Step(const KeeperEvent& event, TimePoint now) {
  ForgiveOwnPause(now);
  effects_.clear();
  std::visit([this](const auto& e) { On(e); }, event);
  AdvanceAll<Reporting>();
  AdvanceAll<Running>();
  AdvanceStage();
  AdvanceAll<Waiting>();
  return std::move(effects_);
}

void NodeKeeper::ForgiveOwnPause(TimePoint now) {
  // The minimum counts: where every step comes late, silence is found, too.
  const std::chrono::nanoseconds gap = now - std::exchange(now_, now) - kPauseMin;
  if (gap.count() <= 0) return;
  if (deadline_.has_value()) *deadline_ += gap;
  for (auto& [name, node] : nodes_) {
    Running* const life = std::get_if<Running>(&node.state);
    if (life == nullptr) continue;
    if (life->drain.began.has_value()) *life->drain.began += gap;
    if (!life->lost.has_value()) continue;
    life->lost->since += gap;
    if (life->lost->dumped_at.has_value()) *life->lost->dumped_at += gap;
  }
}

Plan NodeKeeper::plan() const {
  Plan plan{.run_id = run_id_,
            .began_wall_us = began_wall_us_,
            .workers = workers_,
            .nodes = {},
            .paused = paused_,
            .failure = failure_};
  for (const auto& [name, node] : nodes_) plan.nodes.emplace(name, node.plan());
  return plan;
}

std::vector<KeptNode> NodeKeeper::nodes() const {
  std::vector<KeptNode> kept;
  for (const auto& [name, node] : nodes_) kept.push_back(node.Shown(progress_));
  return kept;
}

KeeperNode* NodeKeeper::NodeOf(const std::string& name) {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

template <typename State>
bool NodeKeeper::Any() const {
  return std::ranges::any_of(nodes_,
                             [](const auto& each) { return each.second.template is<State>(); });
}

bool NodeKeeper::AnyRunning(NodeRole role) const {
  return std::ranges::any_of(nodes_, [role](const auto& each) {
    return each.second.role == role && each.second.template is<Running>();
  });
}

// What becomes of processes.

void NodeKeeper::On(const NodeStarted& event) {
  KeeperNode& node = nodes_.at(event.node);
  node.pid = event.pid;
  node.shortages.OnProgress();
  Running* const life = std::get_if<Running>(&node.state);
  if (life != nullptr && std::exchange(life->found, false)) {
    node.started_at = now_;
    // The former scaler may have died between the order and the deed.
    if (node.limits != Resources{}) Emit(SetLimits{event.node, node.limits});
  }
  Emit(TellMaster{
      .node = event.node, .role = node.role, .start = StartNumber(node.starts), .pid = event.pid});
}

void NodeKeeper::On(const NodeExited& event) {
  KeeperNode& node = nodes_.at(event.node);
  Running* const life = std::get_if<Running>(&node.state);
  MUSTER_CHECK_MSG(life != nullptr, event.node);
  life->found = false;
  node.state = Reporting{
      .life = *life, .exit = event, .progressed = node.progressed(progress_), .heard_at = {}};
  Emit(ExitReport(event, node.role, node.starts));
}

void NodeKeeper::On(const ExitHeard& event) {
  Reporting* const gone = std::get_if<Reporting>(&nodes_.at(event.node).state);
  if (gone != nullptr) gone->heard_at = now_;  // Advance() goes on
}

// Exits that the master has heard of.

void NodeKeeper::Advance(KeeperNode* node, Reporting* gone) {
  if (!gone->heard_at.has_value()) return;
  if (!KeptAlive(*node)) {
    node->state = Finished{};
  } else {
    const std::optional<bool> asked = WasAskedToLeave(*node, *gone);
    if (!asked.has_value()) return;
    if (*asked) {
      node->state = Finished{};
      workers_ = static_cast<uint32_t>(LivingWorkers().size());
      Emit(WorkerSentAway{node->name});
    } else {
      node->state = AfterExit(node, *gone);
    }
  }
  Emit(ReleaseNode{node->name});
}

bool NodeKeeper::KeptAlive(const KeeperNode& node) const {
  if (stage_ == Stage::kDraining) return node.role != NodeRole::kWorker;
  return TakesOrders() && !node.leaving();
}

bool NodeKeeper::EndedWell(const KeeperNode& node, const Reporting& gone) {
  return node.role == NodeRole::kWorker && Classify(gone.exit.exit) == ExitKind::kClean &&
         gone.exit.slot.has_value() && gone.exit.slot->ended;
}

const MasterView::Node* NodeKeeper::SeenOf(const KeeperNode& node) const {
  if (!view_.has_value()) return nullptr;
  const auto seen = std::ranges::find_if(view_->nodes, [&](const MasterView::Node& each) {
    return each.name == node.name && each.start == StartNumber(node.starts);
  });
  return seen == view_->nodes.end() ? nullptr : &*seen;
}

std::optional<bool> NodeKeeper::WasAskedToLeave(const KeeperNode& node,
                                                const Reporting& gone) const {
  if (!EndedWell(node, gone) || gone.life.ending == NodePlan::Ending::kRelaunch) return false;
  if (!view_.has_value() || view_asked_at_ < *gone.heard_at) return std::nullopt;
  // That the job goes on is known: the stage says so. People can ask the master itself for a drain.
  const MasterView::Node* const seen = SeenOf(node);
  return seen != nullptr && seen->drain != DrainState::kNone;
}

KeeperNode::State NodeKeeper::AfterExit(KeeperNode* node, const Reporting& gone) {
  const NodeExited& event = gone.exit;
  if (node->role == NodeRole::kServer && event.exit.signal == 0 &&
      event.exit.code == kBadInputExit && node->starts == 1 && !gone.life.seen) {
    EnterStopping({KeeperOutcome::State::kBadInput,
                   fmt::format("{} refused to start:{}", node->name, Indented(event.last_words))});
    return Finished{};
  }
  if (event.not_started) return WaitForMachine(node, gone);
  const bool wanted = gone.life.ending == NodePlan::Ending::kRelaunch;
  // A drain has a deadline of its own: what we end meanwhile must not fail the job.
  const bool ended_by_us = stage_ == Stage::kDraining && gone.life.stop_due.has_value();
  if (wanted || ended_by_us || gone.excused) {
    // Not at once when it has hardly lived: whoever ends every start of it must not keep us busy.
    const TimePoint start_at = std::max(now_, node->started_at + options_.restarts.backoff_initial);
    Emit(Note{RelaunchNote(event, std::chrono::ceil<std::chrono::milliseconds>(start_at - now_))});
    return Waiting{.start_at = start_at, .excused = true};
  }
  const RestartPolicy::Decision decision = node->policy.OnExit(
      gone.progressed ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  if (decision.crash_loop) {
    GiveUp(CrashLoopReason(event, decision.exits));
    return Finished{};
  }
  const std::chrono::milliseconds delay =
      std::max(decision.delay,
               EndedWell(*node, gone) ? DelayOfLeave(node, gone) : std::chrono::milliseconds{0});
  Emit(Note{RelaunchNote(event, delay)});
  return Waiting{.start_at = now_ + delay};
}

std::chrono::milliseconds NodeKeeper::DelayOfLeave(KeeperNode* node, const Reporting& gone) {
  // What was heard while it ran may lack its last minibatches; the master has them by now.
  const MasterView::Node* const seen = SeenOf(*node);
  const bool worked = gone.life.worked || (seen != nullptr && seen->minibatches > 0);
  // By its own work: that others get on with the job makes it no less idle.
  const RestartPolicy::Decision decision =
      node->leaves.OnExit(worked ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  if (decision.delay.count() > 0) {
    Emit(RelaunchDelayed{
        node->name, fmt::format("{} left by itself {} times in a row, the last time without having "
                                "finished a minibatch: it is started again in {}",
                                node->name, decision.exits, InSeconds(decision.delay))});
  }
  return decision.delay;
}

KeeperNode::Waiting NodeKeeper::WaitForMachine(KeeperNode* node, const Reporting& gone) {
  const RestartPolicy::Decision decision = node->shortages.OnExit(RestartPolicy::Progress::kNone);
  const std::string note = RelaunchNote(gone.exit, decision.delay);
  if (decision.delay.count() > 0) Emit(RelaunchDelayed{node->name, note});
  Emit(Note{note});
  // Nothing was counted: an order has nothing to take back.
  return {.start_at = now_ + decision.delay, .excused = true};
}

// Starts.

void NodeKeeper::Advance(KeeperNode* node, Waiting* waiting) {
  const bool allowed =
      stage_ == Stage::kTraining || (stage_ == Stage::kDraining && node->role != NodeRole::kWorker);
  if (!allowed || now_ < waiting->start_at) return;
  node->state = Running{.progress_at_start = progress_};
  node->started_at = now_;
  node->pid = 0;
  ++node->starts;
  node->former_limits.reset();
  Emit(StartNode{node->name, node->role, node->starts, node->limits});
}

// The job.

void NodeKeeper::GiveUp(std::string reason) {
  MUSTER_CHECK_MSG(stage_ < Stage::kFailing, reason);
  failure_ = std::move(reason);
  Emit(Note{fmt::format("giving up: {}", FirstLine(*failure_))});
  stage_ = Stage::kFailing;
  asked_last_ = now_;
  Emit(AskCancel{*failure_});
}

void NodeKeeper::On(const MasterAnswered& event) {
  const MasterView& view = event.view;
  if (view_.has_value() && HasProgressed(*view_, view)) ++progress_;
  view_ = view;
  view_asked_at_ = event.asked_at;
  EnterPhase(view);
  if (stage_ != Stage::kTraining && stage_ != Stage::kDraining) return;
  for (const MasterView::Node& seen : view.nodes) WatchNode(seen, event.asked_at);
}

void NodeKeeper::EnterPhase(const MasterView& view) {
  if (stage_ >= Stage::kFinishing) return;
  if (IsTerminal(view.state)) {
    stage_ = Stage::kFinishing;
    deadline_ = now_ + options_.finish_wait;
  } else if (stage_ == Stage::kWaiting || stage_ == Stage::kTraining) {
    stage_ = view.state == JobState::kDraining ? Stage::kDraining : Stage::kTraining;
  }
}

void NodeKeeper::WatchNode(const MasterView::Node& seen, TimePoint asked_at) {
  KeeperNode* const node = NodeOf(seen.name);
  if (node == nullptr) return;
  Running* const life = std::get_if<Running>(&node->state);
  if (life == nullptr || life->found) return;
  // The master speaks of the life that it was told of last.
  if (asked_at < node->started_at || seen.start != StartNumber(node->starts)) return;
  if (seen.state == NodeState::kRunning) {
    life->seen = true;
    life->worked |= seen.minibatches > 0;
  }
  life->drain.shown = seen.drain != DrainState::kNone;
  if (seen.drain == DrainState::kDrained && node->role == NodeRole::kServer) {
    life->ending = NodePlan::Ending::kNone;
  }
  if (node->progressed(progress_)) node->policy.OnProgress();
  if (seen.state != NodeState::kLost) {
    life->lost.reset();
    return;
  }
  if (!life->lost.has_value()) life->lost = Running::Lost{.since = now_, .dumped_at = {}};
  const std::chrono::milliseconds patience =
      node->role == NodeRole::kServer ? std::chrono::milliseconds{0} : options_.worker_lost_max;
  if (now_ - life->lost->since >= patience) EndLost(*node, life);
}

void NodeKeeper::EndLost(const KeeperNode& node, Running* life) {
  if (life->stop_due.has_value()) return;
  const std::string why = "the master hears nothing from it: it hangs or was paused";
  std::optional<TimePoint>& dumped_at = life->lost->dumped_at;
  if (!dumped_at.has_value()) {
    dumped_at = now_;
    Emit(Note{fmt::format("{}: {}; its stacks go into its log", node.name, why)});
    Emit(DumpNode{node.name});
  }
  if (now_ - *dumped_at < options_.dump_wait) return;
  life->stop_due = now_;
  Emit(Note{fmt::format("killing {}: {}", node.name, why)});
  Emit(KillNode{node.name, why});
}

void NodeKeeper::On(const StopWanted&) {
  if (stage_ >= Stage::kStopping) return;
  EnterStopping({KeeperOutcome::State::kStopped, "told to stop"});
}

void NodeKeeper::StopRole(NodeRole role) {
  for (auto& [name, node] : nodes_) {
    Running* const life = std::get_if<Running>(&node.state);
    if (node.role == role && life != nullptr) Stop(node, life, options_.stop_timeout);
  }
}

void NodeKeeper::EnterStopping(KeeperOutcome outcome) {
  MUSTER_CHECK(stage_ < Stage::kStopping);
  stage_ = Stage::kStopping;
  pending_ = std::move(outcome);
}

void NodeKeeper::AdvanceStage() {
  if (stage_ == Stage::kFailing && now_ - asked_last_ >= kAskAgain) {
    MUSTER_CHECK(failure_.has_value());
    asked_last_ = now_;
    Emit(AskCancel{*failure_});
  }
  if (stage_ == Stage::kFinishing) AdvanceFinishing();
  if (stage_ == Stage::kStopping) {
    StopRole(NodeRole::kWorker);
    StopRole(NodeRole::kServer);
  }
  if ((stage_ != Stage::kFinishing && stage_ != Stage::kStopping) || Any<Running>()) return;
  if (!gone_at_.has_value()) gone_at_ = now_;
  if (Any<Reporting>() && now_ - *gone_at_ < options_.report_wait) return;
  stage_ = Stage::kOver;
  outcome_ = pending_;
}

void NodeKeeper::AdvanceFinishing() {
  MUSTER_CHECK(deadline_.has_value());
  if (now_ >= *deadline_) StopRole(NodeRole::kWorker);
  // A worker may still need them.
  if (!AnyRunning(NodeRole::kWorker)) StopRole(NodeRole::kServer);
}

}  // namespace muster::scaler
