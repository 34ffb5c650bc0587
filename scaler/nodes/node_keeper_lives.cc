// The part of NodeKeeper that follows each process from its start to its exit.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "scaler/nodes/node_keeper.h"

namespace muster::scaler {
namespace {

constexpr std::chrono::milliseconds kDrainAskAgain{1'000};

}  // namespace

// State Waiting.

void NodeKeeper::Advance(KeeperNode* node, Waiting* waiting) {
  const bool allowed =
      stage_ == Stage::kTraining || (stage_ == Stage::kDraining && node->role != NodeRole::kWorker);
  if (!allowed || now_ < waiting->start_at) return;
  const uint32_t former = node->starts;
  MUSTER_CHECK_MSG(node->life() == nullptr, node->name);
  node->state =
      Running{.limits = node->limits, .waits_since = now_, .progress_at_start = progress_};
  node->started_at = now_;
  node->pid = 0;
  ++node->starts;
  MUSTER_CHECK_MSG(node->starts > former, node->name);  // no start number is used twice
  node->former_limits.reset();
  Emit(StartNode{node->name, node->role, node->starts, node->limits});
}

// State Running.

void NodeKeeper::On(const NodeStarted& event) {
  KeeperNode& node = nodes_.at(event.node);
  Running* const life = std::get_if<Running>(&node.state);
  MUSTER_CHECK_MSG(life != nullptr,
                   event.node);  // the exit of a process is reported after its start
  node.pid = event.pid;
  node.shortages.OnProgress();
  // The node may have waited for its place until now.
  if (!std::exchange(life->begun, true)) node.started_at = now_;
  life->wait = NodeWait::kNone;
  life->wait_reason.clear();
  Greet(&node, life);
  Emit(TellMaster{
      .node = event.node, .role = node.role, .start = StartNumber(node.starts), .pid = event.pid});
}

void NodeKeeper::Greet(KeeperNode* node, Running* life) {
  if (!std::exchange(life->found, false)) return;
  node->started_at = now_;
  // The former scaler may have died before it set these limits.
  if (node->limits != Resources{}) Emit(SetLimits{node->name, node->limits});
}

void NodeKeeper::On(const NodeHeld& event) {
  KeeperNode* const node = NodeOf(event.node);
  Running* const life = node == nullptr ? nullptr : std::get_if<Running>(&node->state);
  if (life == nullptr || life->begun) return;
  Greet(node, life);
  if (life->wait != event.wait) life->waits_since = now_;
  life->wait = event.wait;
  life->wait_reason = event.reason;
  TellHold(*node, *life);
}

void NodeKeeper::TellHold(const KeeperNode& node, const Running& life) {
  Emit(TellMaster{.node = node.name,
                  .role = node.role,
                  .start = StartNumber(node.starts),
                  .text = life.wait_reason,
                  .held = life.wait});
}

void NodeKeeper::On(const NodeResized& event) {
  KeeperNode* const node = NodeOf(event.node);
  Running* const life = node == nullptr ? nullptr : std::get_if<Running>(&node->state);
  // If other limits have replaced these meanwhile, they do not matter any more.
  if (life == nullptr || !life->begun || node->limits != event.limits) return;
  Emit(TellMaster{.node = node->name,
                  .role = node->role,
                  .start = StartNumber(node->starts),
                  .text = event.reason,
                  .resized = event.answer});
  if (event.answer == ResizeAnswer::kDeferred) return;
  const Resources had = node->former_limits.value_or(life->limits);
  if (event.answer == ResizeAnswer::kDone) {
    node->former_limits.reset();
    return;
  }
  // Only a lack of memory is a reason to end a process.
  const bool more_memory = had.memory_bytes > 0 && (event.limits.memory_bytes == 0 ||
                                                    event.limits.memory_bytes > had.memory_bytes);
  if (!more_memory || !TakesOrders()) {
    On(LimitRefused{event.node, event.limits});
    return;
  }
  life->limits = had;
  node->former_limits.reset();
  if (life->ending == NodePlan::Ending::kNone) life->ending = NodePlan::Ending::kRestart;
  Emit(RestartDelayed{node->name,
                      fmt::format("{} cannot get {} where it runs: it is started again with them",
                                  node->name, ToString(event.limits))});
}

void NodeKeeper::On(const NodeExited& event) {
  KeeperNode& node = nodes_.at(event.node);
  Running* const life = std::get_if<Running>(&node.state);
  MUSTER_CHECK_MSG(life != nullptr, event.node);
  life->found = false;
  if (life->begun) {
    node.placed_limits = life->limits;
    if (node.progressed(progress_)) node.disruptions.OnProgress();
  }
  node.state = Reporting{
      .life = *life, .exit = event, .progressed = node.progressed(progress_), .heard_at = {}};
  Emit(ExitReport(event, node.role, node.starts));
}

void NodeKeeper::On(const ExitHeard& event) {
  Reporting* const gone = std::get_if<Reporting>(&nodes_.at(event.node).state);
  if (gone != nullptr) gone->heard_at = now_;  // Advance() continues
}

void NodeKeeper::On(const LimitRefused& event) {
  KeeperNode* const node = NodeOf(event.node);
  if (node == nullptr || node->limits != event.limits) return;
  if (!node->former_limits.has_value()) return;
  if (Running* const life = std::get_if<Running>(&node->state)) {
    life->limits = *node->former_limits;
  }
  node->limits = *std::exchange(node->former_limits, std::nullopt);
}

void NodeKeeper::WatchNode(const MasterView::Node& seen, TimePoint asked_at) {
  KeeperNode* const node = NodeOf(seen.name);
  if (node == nullptr) return;
  Running* const life = std::get_if<Running>(&node->state);
  if (life == nullptr || life->found) return;
  // A restarted master has forgotten why the node waits.
  if (!life->begun && asked_at >= life->waits_since && seen.wait != life->wait) {
    TellHold(*node, *life);
  }
  // The master reports about the newest life that it knows. It may be an earlier one.
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

void NodeKeeper::Advance(KeeperNode* node, Running* life) {
  if (stage_ > Stage::kDraining || life->stop_due.has_value() || life->found) return;
  if (life->ending == NodePlan::Ending::kRestart) {
    Stop(*node, life,
         life->waits() ? std::chrono::milliseconds{0}
         : life->hangs ? options_.stop_timeout
                       : std::max(options_.stop_timeout, options_.drain_timeout));
  }
  if (life->ending == NodePlan::Ending::kDrain) AdvanceDrain(*node, life);
}

void NodeKeeper::AdvanceDrain(const KeeperNode& node, Running* life) {
  // Without a process, it has nothing to hand over.
  if (node.leaving() && life->waits()) {
    Stop(node, life, std::chrono::milliseconds{0});
    return;
  }
  Running::Drain& drain = life->drain;
  if (!drain.began.has_value()) drain.began = now_;
  if (now_ - *drain.began >= options_.drain_timeout) {
    if (node.leaving()) {
      Emit(Note{fmt::format("stopping {}: it has not left within {} (spec.drainTimeout)", node.name,
                            InSeconds(options_.drain_timeout))});
      Stop(node, life, options_.stop_timeout);
    } else if (!drain.shown) {
      Emit(
          Note{fmt::format("{} was not drained within {} (spec.drainTimeout): the master refuses, "
                           "or is away",
                           node.name, InSeconds(options_.drain_timeout))});
      life->ending = NodePlan::Ending::kNone;
    }
    return;
  }
  if (drain.shown) return;
  if (drain.asked.has_value() && now_ - *drain.asked < kDrainAskAgain) return;
  drain.asked = now_;
  Emit(AskDrainNode{node.name, options_.drain_timeout});
}

void NodeKeeper::Stop(const KeeperNode& node, Running* life, std::chrono::milliseconds timeout) {
  const TimePoint due = now_ + timeout;
  // SIGTERM is sent again if the node has less time left, for example because the job ends during a
  // restart.
  if (life->stop_due.has_value() && *life->stop_due <= due) return;
  life->stop_due = due;
  Emit(StopNode{node.name, timeout});
}

// State Reporting.

void NodeKeeper::Advance(KeeperNode* node, Reporting* gone) {
  if (!gone->heard_at.has_value()) return;
  if (!KeptAlive(*node)) {
    // The job may continue after a stop. Then a later scaler with this plan starts the node again.
    const bool comes_back = ToldToStop() && !node->leaving();
    if (comes_back) {
      node->state = Waiting{};
    } else {
      node->state = Finished{};
    }
  } else {
    const std::optional<bool> asked = WasAskedToLeave(*node, *gone);
    if (!asked.has_value()) return;
    if (*asked) {
      node->state = Finished{};
      workers_.WantTheLiving(nodes_);
      Emit(WorkerSentAway{node->name});
    } else {
      node->state = AfterExit(node, *gone);
    }
  }
  // An exit must not be released while the plan still shows the node as running.
  MUSTER_CHECK_MSG(node->life() == nullptr, node->name);
  Emit(ReleaseNode{node->name});
}

bool NodeKeeper::KeptAlive(const KeeperNode& node) const {
  if (stage_ == Stage::kDraining) return node.role != NodeRole::kWorker;
  return TakesOrders() && !node.leaving();
}

bool NodeKeeper::ToldToStop() const {
  return stage_ == Stage::kStopping && pending_.state == KeeperOutcome::State::kStopped;
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
  if (!EndedWell(node, gone) || gone.life.ending == NodePlan::Ending::kRestart) return false;
  // The worker handed over because its place was taken away, and it is still wanted.
  if (gone.exit.disruption != Disruption::kNone) return false;
  if (!view_.has_value() || view_asked_at_ < *gone.heard_at) return std::nullopt;
  // The stage shows that the job continues. So only a drain of this worker explains its end, and
  // people can ask the master itself for one.
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
  if (event.disruption != Disruption::kNone) return ComeBack(node, gone);
  if (event.not_started) return WaitForMachine(node, gone);
  const bool wanted = gone.life.ending == NodePlan::Ending::kRestart;
  // A drain has its own deadline, so nodes that we end during it must not fail the job.
  const bool ended_by_us = stage_ == Stage::kDraining && gone.life.stop_due.has_value();
  if (wanted || ended_by_us || gone.excused) {
    // A life that was very short is not followed at once by the next one. Otherwise something that
    // ends every start would keep this process busy.
    const TimePoint start_at = std::max(now_, node->started_at + options_.restarts.backoff_initial);
    Emit(Note{RestartNote(event, std::chrono::ceil<std::chrono::milliseconds>(start_at - now_))});
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
  Emit(Note{RestartNote(event, delay)});
  return Waiting{.start_at = now_ + delay};
}

std::chrono::milliseconds NodeKeeper::DelayOfLeave(KeeperNode* node, const Reporting& gone) {
  // Its reports while it ran may lack its last minibatches, but by now the master has counted them.
  const MasterView::Node* const seen = SeenOf(*node);
  const bool worked = gone.life.worked || (seen != nullptr && seen->minibatches > 0);
  // A worker is judged by its own work, because progress of other nodes does not make it less idle.
  const RestartPolicy::Decision decision =
      node->leaves.OnExit(worked ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  if (decision.delay.count() > 0) {
    Emit(RestartDelayed{
        node->name, fmt::format("{} left by itself {} times in a row, the last time without having "
                                "finished a minibatch: it is started again in {}",
                                node->name, decision.exits, InSeconds(decision.delay))});
  }
  return decision.delay;
}

KeeperNode::Waiting NodeKeeper::WaitForMachine(KeeperNode* node, const Reporting& gone) {
  const RestartPolicy::Decision decision = node->shortages.OnExit(RestartPolicy::Progress::kNone);
  const std::string note = RestartNote(gone.exit, decision.delay);
  if (decision.delay.count() > 0) Emit(RestartDelayed{node->name, note});
  Emit(Note{note});
  // Nothing was counted, so an order has nothing to excuse.
  return {.start_at = now_ + decision.delay, .excused = true};
}

KeeperNode::Waiting NodeKeeper::ComeBack(KeeperNode* node, const Reporting& gone) {
  const RestartPolicy::Decision decision = node->disruptions.OnExit(
      gone.progressed ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  const TimePoint start_at =
      std::max(now_ + decision.delay, node->started_at + options_.restarts.backoff_initial);
  Emit(Note{RestartNote(gone.exit, std::chrono::ceil<std::chrono::milliseconds>(start_at - now_))});
  return {.start_at = start_at, .excused = true};
}

}  // namespace muster::scaler
