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
    : options_(options),
      run_id_(plan.run_id),
      began_wall_us_(plan.began_wall_us),
      workers_(plan.workers),
      paused_(plan.paused),
      failure_(plan.failure) {
  // The scaler before us may have died before the master heard of it.
  if (failure_.has_value()) stage_ = Stage::kFailing;
  for (const auto& [name, node] : plan.nodes) {
    Node kept = NewNode(node);
    if (node.state == NodePlan::State::kRunning) {
      kept.state = Node::State::kRunning;
      kept.adopted = true;
    }
    if (node.state == NodePlan::State::kFinished) kept.state = Node::State::kFinished;
    nodes_.emplace(name, std::move(kept));
  }
}

NodeKeeper::Node NodeKeeper::NewNode(const NodePlan& durable) const {
  const RestartPolicy::Options endless = RestartPolicy::Endless(options_.restarts);
  return {.durable = durable,
          .policy = RestartPolicy(options_.restarts, durable.exits),
          .leaves = RestartPolicy(endless, durable.leaves),
          .shortages = RestartPolicy(endless)};
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
    if (node.lost_since.has_value()) *node.lost_since += gap;
    if (node.dumped_at.has_value()) *node.dumped_at += gap;
    if (node.drain_began.has_value()) *node.drain_began += gap;
  }
}

Plan NodeKeeper::plan() const {
  Plan plan{.run_id = run_id_,
            .began_wall_us = began_wall_us_,
            .workers = workers_,
            .nodes = {},
            .paused = paused_,
            .failure = failure_};
  for (const auto& [name, node] : nodes_) {
    NodePlan durable = node.durable;
    durable.exits = node.policy.exits();
    durable.leaves = node.leaves.exits();
    plan.nodes.emplace(name, durable);
  }
  return plan;
}

std::vector<KeptNode> NodeKeeper::nodes() const {
  static constexpr KeptNode::State kStates[] = {
      KeptNode::State::kWaiting, KeptNode::State::kRunning, KeptNode::State::kReporting,
      KeptNode::State::kFinished};
  std::vector<KeptNode> kept;
  for (const auto& [name, node] : nodes_) {
    const bool lives = node.state == Node::State::kRunning || node.state == Node::State::kReporting;
    const bool draining =
        node.state == Node::State::kRunning && node.durable.ending == NodePlan::Ending::kDrain;
    // A successor has not told it, and answers for it.
    const bool told =
        node.told_to_end || Leaves(node) || node.durable.ending == NodePlan::Ending::kRelaunch;
    kept.push_back(
        {.name = name,
         .role = node.durable.role,
         .starts = node.durable.starts,
         .state = draining ? KeptNode::State::kDraining : kStates[static_cast<size_t>(node.state)],
         .pid = lives ? node.durable.pid : 0,
         .limits = node.durable.limits,
         .started_at = node.started_at,
         .seen_running = node.seen_running,
         .told_to_end = told,
         .progressed = Progressed(node),
         .exits = node.policy.exits()});
  }
  return kept;
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
  node.durable.pid = event.pid;
  node.shortages.OnProgress();
  if (std::exchange(node.adopted, false)) {
    node.started_at = now_;
    // The former scaler may have died between the order and the deed.
    if (node.durable.limits != Resources{}) Emit(SetLimits{event.node, node.durable.limits});
  }
  Emit(TellMaster{.node = event.node,
                  .role = node.durable.role,
                  .start = StartNumber(node.durable.starts),
                  .pid = event.pid});
}

void NodeKeeper::On(const NodeExited& event) {
  Node& node = nodes_.at(event.node);
  MUSTER_CHECK_MSG(node.state == Node::State::kRunning, event.node);
  node.progressed = Progressed(node);
  node.state = Node::State::kReporting;
  node.adopted = false;
  node.exit = event;
  Emit(ExitReport(event, node.durable.role, node.durable.starts));
}

void NodeKeeper::On(const ExitHeard& event) {
  Node& node = nodes_.at(event.node);
  if (node.state == Node::State::kReporting) node.heard_at = now_;  // DecideExits() goes on
}

bool NodeKeeper::Progressed(const Node& node) const {
  if (node.state == Node::State::kReporting) return node.progressed;
  return node.state == Node::State::kRunning && node.seen_running &&
         node.progress_at_start != progress_;
}

bool NodeKeeper::KeptAlive(const Node& node) const {
  if (stage_ == Stage::kDraining) return node.durable.role != NodeRole::kWorker;
  return TakesOrders() && !Leaves(node);
}

bool NodeKeeper::EndedWell(const Node& node) {
  return node.durable.role == NodeRole::kWorker && Classify(node.exit->exit) == ExitKind::kClean &&
         node.exit->slot.has_value() && node.exit->slot->ended;
}

bool NodeKeeper::HasWorked(const std::string& name, const Node& node) const {
  // What was heard while it ran may lack its last minibatches; the master has them by now.
  return node.worked ||
         (view_.has_value() && std::ranges::any_of(view_->nodes, [&](const MasterView::Node& seen) {
            return seen.name == name && seen.start == StartNumber(node.durable.starts) &&
                   seen.minibatches > 0;
          }));
}

std::optional<bool> NodeKeeper::WasAskedToLeave(const std::string& name, const Node& node) const {
  if (!EndedWell(node) || node.durable.ending == NodePlan::Ending::kRelaunch) return false;
  if (!view_.has_value() || view_asked_at_ < *node.heard_at) return std::nullopt;
  // That the job goes on is known: the stage says so. People can ask the master itself for a drain.
  return std::any_of(view_->nodes.begin(), view_->nodes.end(), [&](const MasterView::Node& seen) {
    const bool same = seen.name == name && seen.start == StartNumber(node.durable.starts);
    return same && !seen.drain.empty();
  });
}

void NodeKeeper::DecideExits() {
  for (auto& [name, node] : nodes_) {
    if (node.state == Node::State::kReporting && node.heard_at.has_value()) DecideExit(name, &node);
  }
}

void NodeKeeper::DecideExit(const std::string& name, Node* node) {
  MUSTER_CHECK_MSG(node->exit.has_value() && node->heard_at.has_value(), name);
  if (!KeptAlive(*node)) {
    Finish(node);
  } else {
    const std::optional<bool> asked = WasAskedToLeave(name, *node);
    if (!asked.has_value()) return;
    if (*asked) {
      Finish(node);
      workers_ = static_cast<uint32_t>(LivingWorkers().size());
      Emit(WorkerSentAway{name});
    } else {
      Relaunch(name, node);
    }
  }
  node->exit.reset();
  node->heard_at.reset();
  Emit(ReleaseNode{name});
}

void NodeKeeper::Finish(Node* node) {
  MUSTER_CHECK(node->state != Node::State::kRunning);
  node->state = Node::State::kFinished;
  node->durable.state = NodePlan::State::kFinished;
  node->durable.ending = NodePlan::Ending::kNone;
}

void NodeKeeper::Relaunch(const std::string& name, Node* node) {
  MUSTER_CHECK_MSG(node->state == Node::State::kReporting && node->exit.has_value(), name);
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
  if (event.not_started) return WaitForMachine(name, node);
  const bool wanted =
      std::exchange(node->durable.ending, NodePlan::Ending::kNone) == NodePlan::Ending::kRelaunch;
  // A drain has a deadline of its own: what we end meanwhile must not fail the job.
  const bool ended_by_us = stage_ == Stage::kDraining && node->told_to_end;
  if (wanted || ended_by_us || node->excused) {
    // Not at once when it has hardly lived: whoever ends every start of it must not keep us busy.
    node->start_at = std::max(now_, node->started_at + options_.restarts.backoff_initial);
    node->excused = true;
    Emit(Note{
        RelaunchNote(event, std::chrono::ceil<std::chrono::milliseconds>(node->start_at - now_))});
    return;
  }
  const RestartPolicy::Decision decision = node->policy.OnExit(
      node->progressed ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  if (decision.crash_loop) {
    Finish(node);
    GiveUp(CrashLoopReason(event, decision.exits));
    return;
  }
  const std::chrono::milliseconds delay = std::max(
      decision.delay, EndedWell(*node) ? DelayOfLeave(name, node) : std::chrono::milliseconds{0});
  node->start_at = now_ + delay;
  Emit(Note{RelaunchNote(event, delay)});
}

std::chrono::milliseconds NodeKeeper::DelayOfLeave(const std::string& name, Node* node) {
  // By its own work: that others get on with the job makes it no less idle.
  const RestartPolicy::Decision decision = node->leaves.OnExit(
      HasWorked(name, *node) ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  if (decision.delay.count() > 0) {
    Emit(RelaunchDelayed{
        name, fmt::format("{} left by itself {} times in a row, the last time without having "
                          "finished a minibatch: it is started again in {}",
                          name, decision.exits, InSeconds(decision.delay))});
  }
  return decision.delay;
}

void NodeKeeper::WaitForMachine(const std::string& name, Node* node) {
  node->durable.ending = NodePlan::Ending::kNone;
  const RestartPolicy::Decision decision = node->shortages.OnExit(RestartPolicy::Progress::kNone);
  node->start_at = now_ + decision.delay;
  const std::string note = RelaunchNote(*node->exit, decision.delay);
  if (decision.delay.count() > 0) Emit(RelaunchDelayed{name, note});
  Emit(Note{note});
}

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
  if (node.state != Node::State::kRunning || node.adopted) return;
  // The master speaks of the life that it was told of last.
  if (asked_at < node.started_at || seen.start != StartNumber(node.durable.starts)) return;
  if (seen.state == "running") {
    node.seen_running = true;
    node.worked |= seen.minibatches > 0;
  }
  node.drain_shown = !seen.drain.empty();
  if (seen.drain == "drained" && node.durable.role == NodeRole::kServer) {
    node.durable.ending = NodePlan::Ending::kNone;
  }
  if (Progressed(node)) node.policy.OnProgress();
  if (seen.state != "lost") {
    node.lost_since.reset();
    node.dumped_at.reset();
    return;
  }
  if (!node.lost_since.has_value()) node.lost_since = now_;
  const std::chrono::milliseconds patience = node.durable.role == NodeRole::kServer
                                                 ? std::chrono::milliseconds{0}
                                                 : options_.worker_lost_max;
  if (now_ - *node.lost_since >= patience) EndLost(seen.name, &node);
}

void NodeKeeper::EndLost(const std::string& name, Node* node) {
  if (node->told_to_end) return;
  const std::string why = "the master hears nothing from it: it hangs or was paused";
  if (!node->dumped_at.has_value()) {
    node->dumped_at = now_;
    Emit(Note{fmt::format("{}: {}; its stacks go into its log", name, why)});
    Emit(DumpNode{name});
  }
  if (now_ - *node->dumped_at < options_.dump_wait) return;
  node->told_to_end = true;
  node->stop_due = now_;
  Emit(Note{fmt::format("killing {}: {}", name, why)});
  Emit(KillNode{name, why});
}

void NodeKeeper::On(const StopWanted&) {
  if (stage_ >= Stage::kStopping) return;
  EnterStopping({KeeperOutcome::State::kStopped, "told to stop"});
}

void NodeKeeper::StopRole(NodeRole role) {
  for (auto& [name, node] : nodes_) {
    if (node.durable.role != role || node.state != Node::State::kRunning) continue;
    Stop(name, &node, options_.stop_timeout);
  }
}

void NodeKeeper::EnterStopping(KeeperOutcome outcome) {
  MUSTER_CHECK(stage_ < Stage::kStopping);
  stage_ = Stage::kStopping;
  pending_ = std::move(outcome);
}

void NodeKeeper::Advance() {
  DecideExits();
  if (stage_ == Stage::kFailing && now_ - asked_last_ >= kAskAgain) {
    MUSTER_CHECK(failure_.has_value());
    asked_last_ = now_;
    Emit(AskCancel{*failure_});
  }
  if (stage_ <= Stage::kDraining) AdvanceEndings();
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
  MUSTER_CHECK(deadline_.has_value());
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
      MUSTER_CHECK_MSG(node.durable.state == NodePlan::State::kIdle && !node.exit.has_value(),
                       name);
      node.state = Node::State::kRunning;
      node.started_at = now_;
      node.durable.state = NodePlan::State::kRunning;
      node.durable.pid = 0;
      ++node.durable.starts;
      node.progress_at_start = progress_;
      node.seen_running = false;
      node.durable.ending = NodePlan::Ending::kNone;
      node.told_to_end = false;
      node.excused = false;
      node.worked = false;
      node.hangs = false;
      node.durable.former_limits.reset();
      node.lost_since.reset();
      node.dumped_at.reset();
      node.drain_began.reset();
      node.drain_asked.reset();
      node.drain_shown = false;
      Emit(StartNode{name, role, node.durable.starts, node.durable.limits});
    }
  }
}

}  // namespace muster::scaler
