#include "scaler/nodes/node_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster::scaler {
namespace {

constexpr std::chrono::milliseconds kAskAgain{1'000};
/// Steps come about every 100 ms. If no step came for this long, this process stood still.
constexpr std::chrono::milliseconds kPauseMin{2'000};

Note LeaveNote(const std::string& worker) {
  return {fmt::format("{} is to leave", worker)};
}

}  // namespace

NodeKeeper::NodeKeeper(const KeeperOptions& options, const Plan& plan)
    : options_(options),
      run_id_(plan.run_id),
      began_wall_us_(plan.began_wall_us),
      workers_({.restarts = options.restarts, .limits = options.worker_limits}, plan.workers),
      paused_(plan.paused),
      failure_(plan.failure) {
  // The scaler before us may have died before it could tell the master.
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
  MUSTER_CHECK(stage_ != Stage::kOver || !Any<Running>());
  return std::move(effects_);
}

void NodeKeeper::ForgiveOwnPause(TimePoint now) {
  // Only what exceeds the minimum counts, so a silent node is also found if every step is late.
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
            .workers = workers_.wanted(),
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

void NodeKeeper::On(const RunAbandoned& event) {
  if (!TakesOrders() || abandoned_.has_value()) return;
  abandoned_ = event.why;
  asked_last_ = now_;
  Emit(AskDrainJob{*abandoned_});
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
  if (TakesOrders() && abandoned_.has_value() && now_ - asked_last_ >= kAskAgain) {
    asked_last_ = now_;
    Emit(AskDrainJob{*abandoned_});
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
  for (auto& [name, node] : nodes_) {
    Running* const life = std::get_if<Running>(&node.state);
    if (life != nullptr && life->waits()) Stop(node, life, std::chrono::milliseconds{0});
  }
  // Servers stay as long as a worker may need them.
  if (!AnyRunning(NodeRole::kWorker)) StopRole(NodeRole::kServer);
}

// What policies and people want.

void NodeKeeper::Obey(const ResizeNode& order) {
  KeeperNode* const node = NodeOf(order.node);
  // This also works while the job drains, because a server that is killed for its memory takes no
  // snapshots.
  if (node == nullptr || stage_ > Stage::kDraining) return;
  const Resources limits = order.After(node->limits);
  const Resources former = std::exchange(node->limits, limits);
  Running* const life = std::get_if<Running>(&node->state);
  if (life == nullptr) return;
  // If there is no process yet, it is made again with these limits.
  if (life->waits()) {
    if (limits != former && life->ending == NodePlan::Ending::kNone) {
      life->ending = NodePlan::Ending::kRestart;
    }
    return;
  }
  life->limits = limits;
  // If they were not set before this scaler took over, they were never in force.
  if (!life->found || !node->former_limits.has_value()) node->former_limits = former;
  Emit(SetLimits{order.node, limits});
}

void NodeKeeper::Obey(const RestartNode& order) {
  KeeperNode* const node = NodeOf(order.node);
  if (node == nullptr || node->is<Finished>() || node->leaving()) return;
  if (order.only_start.has_value() && *order.only_start != node->starts) return;
  Running* const life = std::get_if<Running>(&node->state);
  const bool needed = stage_ == Stage::kDraining && node->role == NodeRole::kServer;
  const bool down = life == nullptr || life->waits();
  if (!TakesOrders() && !(down && needed)) return;
  if (order.limits.has_value()) {
    node->limits = *order.limits;
    node->former_limits.reset();  // they are for the next start, even if they are refused now
  }
  if (life != nullptr) {
    Emit(Note{fmt::format("restarting {}: {}", order.node, order.why)});
    life->ending = NodePlan::Ending::kRestart;
    life->hangs |= order.hangs;  // Advance() stops it
  } else if (Reporting* const gone = std::get_if<Reporting>(&node->state)) {
    gone->excused |= !order.charged;
  } else {
    Waiting& waiting = std::get<Waiting>(node->state);
    // Its exit was counted when the master had heard of it.
    if (!order.charged && !std::exchange(waiting.excused, true)) node->policy.Excuse();
    waiting.start_at = std::min(
        waiting.start_at, std::max(now_, node->started_at + options_.restarts.backoff_initial));
  }
}

void NodeKeeper::Obey(const ScaleWorkers& order) {
  if (!TakesOrders()) return;
  for (const std::string& name : workers_.Want(order.workers, &nodes_)) {
    Emit(LeaveNote(name));  // Advance() continues
  }
}

void NodeKeeper::Obey(const EndNode& order) {
  KeeperNode* const node = NodeOf(order.node);
  if (node == nullptr || !TakesOrders()) return;
  Running* const life = std::get_if<Running>(&node->state);
  if (node->role == NodeRole::kWorker) {
    if (KeptWorkers::Leave(node)) Emit(LeaveNote(node->name));
    workers_.WantTheLiving(nodes_);
  } else if (life != nullptr && life->ending == NodePlan::Ending::kNone) {
    life->ending = NodePlan::Ending::kDrain;
    life->drain = {};
  }
}

void NodeKeeper::Obey(const FailJob& order) {
  if (TakesOrders()) GiveUp(order.reason);
}

void NodeKeeper::Obey(const SetPaused& order) {
  if (order.paused) {
    paused_.insert(order.policy);
  } else {
    paused_.erase(order.policy);
  }
}

}  // namespace muster::scaler
