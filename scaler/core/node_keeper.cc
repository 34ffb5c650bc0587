#include "scaler/core/node_keeper.h"

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
    : options_(options), run_id_(plan.run_id), workers_(plan.workers) {
  for (const auto& [name, node] : plan.nodes) {
    Node kept{.durable = node, .policy = RestartPolicy(options.restarts, node.exits)};
    if (node.state == NodePlan::State::kRunning) kept.state = Node::State::kRunning;
    if (node.state == NodePlan::State::kFinished) kept.state = Node::State::kFinished;
    nodes_.emplace(name, std::move(kept));
  }
}

std::vector<KeeperEffect> NodeKeeper::Step(const KeeperEvent& event, TimePoint now) {
  ForgiveOwnPause(now);
  effects_.clear();
  std::visit([this](const auto& e) { On(e); }, event);
  Advance();
  StartDueNodes();
  return std::move(effects_);
}

void NodeKeeper::ForgiveOwnPause(TimePoint now) {
  // The minimum counts: where every step comes late, silence is found, too.
  const std::chrono::nanoseconds gap = now - std::exchange(now_, now) - kPauseMin;
  if (gap.count() <= 0) return;
  if (deadline_.has_value()) *deadline_ += gap;
  for (auto& [name, node] : nodes_) {
    node.started_at += gap;
    if (node.lost_since.has_value()) *node.lost_since += gap;
  }
}

Plan NodeKeeper::plan() const {
  Plan plan{.run_id = run_id_, .workers = workers_, .nodes = {}};
  for (const auto& [name, node] : nodes_) {
    NodePlan durable = node.durable;
    durable.exits = node.policy.exits();
    plan.nodes.emplace(name, durable);
  }
  return plan;
}

bool NodeKeeper::Any(Node::State state) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](const auto& entry) { return entry.second.state == state; });
}

bool NodeKeeper::AnyRunning(NodeRole role) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    return entry.second.durable.role == role && entry.second.state == Node::State::kRunning;
  });
}

void NodeKeeper::On(const NodeStarted& event) {
  Node& node = nodes_.at(event.node);
  node.pid = event.pid;
  node.durable.pid = event.pid;
  Emit(TellMaster{.node = event.node,
                  .role = node.durable.role,
                  .pid = event.pid,
                  .restarts = node.durable.starts - 1});
}

void NodeKeeper::On(const NodeExited& event) {
  Node& node = nodes_.at(event.node);
  MUSTER_CHECK_MSG(node.state == Node::State::kRunning, event.node);
  node.state = Node::State::kReporting;
  node.pid = 0;
  node.exit = event;
  Emit(ExitReport(event, node.durable.role, node.durable.starts));
}

void NodeKeeper::On(const ExitHeard& event) {
  Node& node = nodes_.at(event.node);
  if (node.state != Node::State::kReporting) return;
  const bool ended_well = node.durable.role == NodeRole::kWorker &&
                          Classify(node.exit->exit) == ExitKind::kClean &&
                          node.exit->slot.has_value() && node.exit->slot->ended;
  const bool kept_alive = stage_ == Stage::kWaiting || stage_ == Stage::kTraining ||
                          (stage_ == Stage::kDraining && node.durable.role != NodeRole::kWorker);
  if (ended_well || !kept_alive) {
    Finish(&node);
  } else {
    Relaunch(event.node, &node);
  }
  node.exit.reset();
  Emit(ReleaseNode{event.node});
}

void NodeKeeper::Finish(Node* node) {
  node->state = Node::State::kFinished;
  node->durable.state = NodePlan::State::kFinished;
}

void NodeKeeper::Relaunch(const std::string& name, Node* node) {
  const NodeExited& event = *node->exit;
  node->state = Node::State::kWaiting;
  node->durable.state = NodePlan::State::kIdle;
  if (node->durable.role == NodeRole::kServer && event.exit.signal == 0 &&
      event.exit.code == kBadInputExit && node->durable.starts == 1 && !node->seen_running) {
    Finish(node);
    EnterStopping({KeeperOutcome::State::kBadInput,
                   fmt::format("{} refused to start:{}", name, Indented(event.last_words))});
    return;
  }
  // Progress of the job counts for a node only if the node was there to take part in it.
  const bool progressed = node->progress_at_start != progress_ && node->seen_running;
  const RestartPolicy::Decision decision = node->policy.OnExit(
      progressed ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  if (decision.crash_loop) {
    Finish(node);
    GiveUp(CrashLoopReason(event, decision.exits));
    return;
  }
  node->start_at = now_ + decision.delay;
  Emit(Note{RelaunchNote(event, decision.delay)});
}

void NodeKeeper::GiveUp(std::string reason) {
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
  EnterPhase(view);
  if (stage_ != Stage::kTraining && stage_ != Stage::kDraining) return;
  for (const MasterView::Node& seen : view.nodes) WatchNode(seen, event.asked_at);
}

void NodeKeeper::EnterPhase(const MasterView& view) {
  if (stage_ >= Stage::kFinishing) return;
  if (IsTerminal(view.phase)) {
    stage_ = Stage::kFinishing;
    deadline_ = now_ + options_.finish_wait;
  } else if (stage_ == Stage::kWaiting || stage_ == Stage::kTraining) {
    stage_ = view.phase == JobPhase::kDraining ? Stage::kDraining : Stage::kTraining;
  }
}

void NodeKeeper::WatchNode(const MasterView::Node& seen, TimePoint asked_at) {
  const auto found = nodes_.find(seen.name);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  if (node.state != Node::State::kRunning) return;
  // The master speaks of the life that it was told of last.
  if (asked_at < node.started_at || seen.pid != node.pid || node.pid == 0) return;
  if (seen.state == "running") node.seen_running = true;
  if (node.seen_running && node.progress_at_start != progress_) node.policy.OnProgress();
  if (seen.state != "lost") {
    node.lost_since.reset();
    return;
  }
  if (!node.lost_since.has_value()) node.lost_since = now_;
  const std::chrono::milliseconds patience = node.durable.role == NodeRole::kServer
                                                 ? std::chrono::milliseconds{0}
                                                 : options_.worker_lost_max;
  if (now_ - *node.lost_since < patience) return;
  if (std::exchange(node.told_to_end, true)) return;
  const std::string why = "the master hears nothing from it: it hangs or was paused";
  Emit(Note{fmt::format("killing {}: {}", seen.name, why)});
  Emit(KillNode{seen.name, why});
}

void NodeKeeper::On(const StopWanted&) {
  if (stage_ >= Stage::kStopping) return;
  EnterStopping({KeeperOutcome::State::kStopped, "told to stop"});
}

void NodeKeeper::StopRole(NodeRole role) {
  for (auto& [name, node] : nodes_) {
    if (node.durable.role != role || node.state != Node::State::kRunning) continue;
    if (std::exchange(node.told_to_end, true)) continue;
    Emit(StopNode{name, options_.stop_timeout});
  }
}

void NodeKeeper::EnterStopping(KeeperOutcome outcome) {
  stage_ = Stage::kStopping;
  pending_ = std::move(outcome);
}

void NodeKeeper::Advance() {
  if (stage_ == Stage::kFailing && now_ - asked_last_ >= kAskAgain) {
    asked_last_ = now_;
    Emit(AskCancel{*failure_});
  }
  if (stage_ == Stage::kFinishing) AdvanceFinishing();
  if (stage_ == Stage::kStopping) {
    StopRole(NodeRole::kWorker);
    StopRole(NodeRole::kServer);
  }
  if ((stage_ != Stage::kFinishing && stage_ != Stage::kStopping) || Any(Node::State::kRunning)) {
    return;
  }
  if (!gone_at_.has_value()) gone_at_ = now_;
  if (Any(Node::State::kReporting) && now_ - *gone_at_ < options_.report_wait) return;
  stage_ = Stage::kOver;
  outcome_ = pending_;
}

void NodeKeeper::AdvanceFinishing() {
  if (now_ >= *deadline_) StopRole(NodeRole::kWorker);
  // A worker may still need them.
  if (!AnyRunning(NodeRole::kWorker)) StopRole(NodeRole::kServer);
}

void NodeKeeper::StartDueNodes() {
  for (NodeRole role : {NodeRole::kServer, NodeRole::kWorker}) {
    const bool allowed =
        stage_ == Stage::kTraining || (stage_ == Stage::kDraining && role != NodeRole::kWorker);
    for (auto& [name, node] : nodes_) {
      if (!allowed || node.durable.role != role) continue;
      if (node.state != Node::State::kWaiting || now_ < node.start_at) continue;
      node.state = Node::State::kRunning;
      node.started_at = now_;
      node.pid = 0;
      node.durable.state = NodePlan::State::kRunning;
      node.durable.pid = 0;
      ++node.durable.starts;
      node.progress_at_start = progress_;
      node.seen_running = false;
      node.told_to_end = false;
      node.lost_since.reset();
      Emit(StartNode{name, role, node.durable.starts});
    }
  }
}

}  // namespace muster::scaler
