#include "scaler/launcher/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kAskAgain{1'000};
constexpr std::chrono::milliseconds kCollectWait{3'000};
/// Steps come every 100 ms or so; this long without one, the process stood still.
constexpr std::chrono::milliseconds kPauseMin{2'000};
/// How `muster master` and `muster ps` say that their input is wrong: starting them again is no
/// use.
constexpr int kBadInputExit = 2;

std::string InSeconds(std::chrono::milliseconds duration) {
  return fmt::format("{:g} s", static_cast<double>(duration.count()) / 1000.0);
}

std::string Indented(const std::string& lines) {
  std::string text;
  size_t begin = 0;
  while (begin < lines.size()) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    text += "\n    " + lines.substr(begin, end - begin);
    begin = end + 1;
  }
  return text;
}

RunOutcome::State ToOutcome(JobPhase phase) {
  switch (phase) {
    case JobPhase::kSucceeded:
      return RunOutcome::State::kSucceeded;
    case JobPhase::kDrained:
      return RunOutcome::State::kDrained;
    case JobPhase::kCancelled:
      return RunOutcome::State::kCancelled;
    default:
      return RunOutcome::State::kFailed;
  }
}

}  // namespace

Supervisor::Supervisor(const SupervisorOptions& options) : options_(options) {
  const RestartPolicy policy(options.restarts);
  nodes_.emplace("master", Node{.role = NodeRole::kMaster, .policy = policy, .wanted = true});
  for (uint32_t i = 0; i < options.servers; ++i) {
    nodes_.emplace(fmt::format("ps-{}", i), Node{.role = NodeRole::kServer, .policy = policy});
  }
  for (uint32_t i = 0; i < options.workers; ++i) {
    nodes_.emplace(fmt::format("worker-{}", i), Node{.role = NodeRole::kWorker, .policy = policy});
  }
}

std::vector<SupervisorEffect> Supervisor::Step(const SupervisorEvent& event, TimePoint now) {
  ForgiveOwnPause(now);
  effects_.clear();
  std::visit([this](const auto& e) { On(e); }, event);
  Advance();
  StartDueNodes();
  return std::move(effects_);
}

void Supervisor::ForgiveOwnPause(TimePoint now) {
  // The minimum counts: where every step comes late, silence is found, too.
  const std::chrono::nanoseconds gap = now - std::exchange(now_, now) - kPauseMin;
  if (gap.count() <= 0) return;
  last_answer_ += gap;
  if (deadline_.has_value()) *deadline_ += gap;
  for (auto& [name, node] : nodes_) {
    node.started_at += gap;
    if (node.lost_since.has_value()) *node.lost_since += gap;
  }
}

uint32_t Supervisor::restarts(NodeRole role) const {
  uint32_t sum = 0;
  for (const auto& [name, node] : nodes_) {
    if (node.role == role && node.starts > 1) sum += node.starts - 1;
  }
  return sum;
}

uint32_t Supervisor::running(NodeRole role) const {
  return static_cast<uint32_t>(std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    return entry.second.role == role && entry.second.state == Node::State::kRunning;
  }));
}

uint32_t Supervisor::wanted(NodeRole role) const {
  return role == NodeRole::kMaster
             ? 1
             : (role == NodeRole::kServer ? options_.servers : options_.workers);
}

bool Supervisor::AnyRunning(NodeRole role) const {
  return running(role) > 0;
}

void Supervisor::On(const NodeStarted& event) {
  Node& node = nodes_.at(event.node);
  node.pid = event.pid;
  Emit(TellMaster{
      .node = event.node, .role = node.role, .pid = event.pid, .restarts = node.starts - 1});
}

void Supervisor::On(const NodeExited& event) {
  Node& node = nodes_.at(event.node);
  MUSTER_CHECK_MSG(node.state == Node::State::kRunning, event.node);
  TellMaster tell{.node = event.node,
                  .role = node.role,
                  .pid = event.pid,
                  .exited = true,
                  .exit = event.exit,
                  .text = event.last_words,
                  .restarts = node.starts - 1};
  if (event.slot.has_value()) {
    tell.computing_token = event.slot->computing_token.value();
    tell.minibatches_started = event.slot->minibatches_started;
    tell.incarnation = event.slot->incarnation;
  }
  Emit(std::move(tell));
  const bool ended_well = node.role == NodeRole::kWorker &&
                          Classify(event.exit) == ExitKind::kClean && event.slot.has_value() &&
                          event.slot->ended;
  const bool kept_alive = stage_ == Stage::kStarting || stage_ == Stage::kTraining ||
                          (stage_ == Stage::kDraining && node.role != NodeRole::kWorker);
  if (ended_well || !kept_alive) {
    node.state = Node::State::kFinished;
  } else {
    Relaunch(event.node, &node, event);
  }
  node.pid = 0;
}

void Supervisor::Relaunch(const std::string& name, Node* node, const NodeExited& event) {
  node->state = Node::State::kWaiting;
  const std::string what = fmt::format("{} ended ({})", name, ToString(event.exit));
  const bool before_first_word =
      node->role == NodeRole::kMaster ? !answered_ : (node->starts == 1 && !node->seen_running);
  if (node->role != NodeRole::kWorker && event.exit.signal == 0 &&
      event.exit.code == kBadInputExit && before_first_word) {
    node->wanted = false;
    EnterStopping({RunOutcome::State::kBadInput,
                   fmt::format("{} refused to start:{}", name, Indented(event.last_words))});
    return;
  }
  // Progress of the job counts for a node only if the node was there to take part in it.
  const bool progressed = node->progress_at_start != progress_ &&
                          (node->role == NodeRole::kMaster || node->seen_running);
  const RestartPolicy::Decision decision = node->policy.OnExit(
      progressed ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  if (decision.crash_loop) {
    node->wanted = false;
    GiveUp(fmt::format(
        "{} ended {} times without progress in between, the last time with {}: "
        "{}.{}{}\n  The whole log: muster logs {}. When it is mended, run the job "
        "again: it goes on where it stopped.",
        name, decision.exits, ToString(event.exit), Explain(event.exit),
        event.last_words.empty() ? "" : "\n  Its last lines:", Indented(event.last_words), name));
    return;
  }
  node->start_at = now_ + decision.delay;
  Emit(Note{decision.delay.count() == 0
                ? fmt::format("{}; starting it again", what)
                : fmt::format("{}; starting it again in {}", what, InSeconds(decision.delay))});
}

void Supervisor::GiveUp(std::string reason) {
  if (failure_.has_value()) return;
  failure_ = std::move(reason);
  // The summary has the whole of it.
  Emit(Note{fmt::format("giving up: {}", failure_->substr(0, failure_->find('\n')))});
  deadline_ = now_ + options_.cancel_wait;
  // A master that keeps crashing cannot be told.
  if (!AnyRunning(NodeRole::kMaster)) {
    EnterStopping({RunOutcome::State::kFailed, *failure_});
    return;
  }
  stage_ = Stage::kFinishing;
  asked_last_ = now_;
  Emit(AskCancel{*failure_});
}

void Supervisor::On(const MasterAnswered& event) {
  Node& master = nodes_.at("master");
  // An answer of a former life says nothing about this one.
  if (master.state != Node::State::kRunning || event.asked_at < master.started_at) return;
  last_answer_ = now_;
  master.seen_running = true;
  const MasterView& view = event.view;
  if (view_.has_value() &&
      (view.done_seq > view_->done_seq || view.records_done > view_->records_done)) {
    ++progress_;
  }
  view_ = view;
  if (!answered_) {
    answered_ = true;
    Emit(Note{"the master answers"});
  }
  if (stage_ == Stage::kStarting) {
    stage_ = Stage::kTraining;
    for (auto& [name, node] : nodes_) {
      node.wanted = true;
      if (node.role != NodeRole::kMaster) node.start_at = now_;
    }
  }
  if (stage_ == Stage::kTraining || stage_ == Stage::kDraining) {
    for (const MasterView::Node& seen : view.nodes) WatchNode(seen, event.asked_at);
  }
  if (stage_ == Stage::kTraining && view.phase == JobPhase::kDraining) {
    EnterDraining();
  }
  if (IsTerminal(view.phase) && (stage_ == Stage::kTraining || stage_ == Stage::kDraining ||
                                 (stage_ == Stage::kFinishing && !pending_.has_value()))) {
    stage_ = Stage::kFinishing;
    deadline_ = now_ + options_.finish_wait;
    pending_ = RunOutcome{ToOutcome(view.phase), view.reason};
    if (failure_.has_value()) pending_ = RunOutcome{RunOutcome::State::kFailed, *failure_};
  }
  if (stage_ == Stage::kCollecting && event.asked_at >= collecting_since_) {
    EnterStopping(*pending_);
  }
}

void Supervisor::EnterDraining() {
  stage_ = Stage::kDraining;
  // Longer than the master's two phases, leases and snapshots: who stopped the servers before would
  // take the snapshots from it.
  deadline_ = now_ + 2 * options_.drain_timeout + options_.drain_slack;
  asked_last_ = now_;
}

void Supervisor::WatchNode(const MasterView::Node& seen, TimePoint asked_at) {
  const auto found = nodes_.find(seen.name);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  if (node.role == NodeRole::kMaster || node.state != Node::State::kRunning) return;
  // The master speaks of the life that it was told of last.
  if (asked_at < node.started_at || seen.pid != node.pid || node.pid == 0) return;
  if (seen.state == "running") node.seen_running = true;
  if (seen.state != "lost") {
    node.lost_since.reset();
    return;
  }
  if (!node.lost_since.has_value()) node.lost_since = now_;
  const std::chrono::milliseconds patience =
      node.role == NodeRole::kServer ? std::chrono::milliseconds{0} : options_.worker_lost_max;
  if (now_ - *node.lost_since < patience) return;
  KillOnce(seen.name, &node, "the master hears nothing from it: it hangs or was paused");
}

void Supervisor::WatchMaster() {
  Node& master = nodes_.at("master");
  if (master.state != Node::State::kRunning || stage_ >= Stage::kStopping) return;
  const TimePoint heard = std::max(last_answer_, master.started_at);
  const std::chrono::milliseconds patience =
      master.seen_running ? options_.master_silence_max : options_.master_start_max;
  if (now_ - heard < patience) return;
  // Killed before another is started: a paused master still holds the journal's lock.
  KillOnce("master", &master, fmt::format("it has not answered for {}", InSeconds(patience)));
}

void Supervisor::KillOnce(const std::string& name, Node* node, std::string why) {
  if (std::exchange(node->told_to_end, true)) return;
  Emit(Note{fmt::format("killing {}: {}", name, why)});
  Emit(KillNode{name, std::move(why)});
}

void Supervisor::On(const DrainWanted&) {
  if (stage_ == Stage::kStarting) {
    EnterStopping({RunOutcome::State::kStopped, "stopped before the master answered"});
  } else if (stage_ == Stage::kTraining) {
    EnterDraining();
    Emit(Note{"draining: no new shards are handed out; press Ctrl-C again to stop at once",
              /*answer=*/true});
    Emit(AskDrain{});
  }
}

void Supervisor::On(const StopWanted&) {
  if (stage_ == Stage::kOver) return;
  if (stage_ != Stage::kStopping) {
    EnterStopping(pending_.value_or(RunOutcome{
        RunOutcome::State::kStopped, "stopped at once by the user; run the job again to go on"}));
  }
  for (auto& [name, node] : nodes_) {
    if (node.state == Node::State::kRunning) Emit(KillNode{name, "stopped by the user"});
  }
}

void Supervisor::StopRole(NodeRole role) {
  for (auto& [name, node] : nodes_) {
    if (node.role != role || node.state != Node::State::kRunning) continue;
    if (std::exchange(node.told_to_end, true)) continue;
    Emit(StopNode{name, options_.stop_timeout});
  }
}

void Supervisor::EnterStopping(RunOutcome outcome) {
  stage_ = Stage::kStopping;
  pending_ = std::move(outcome);
  for (auto& [name, node] : nodes_) node.wanted = false;
  for (NodeRole role : {NodeRole::kWorker, NodeRole::kServer, NodeRole::kMaster}) StopRole(role);
}

void Supervisor::Advance() {
  WatchMaster();
  const bool late = deadline_.has_value() && now_ >= *deadline_;
  if (stage_ == Stage::kDraining) {
    if (late) {
      EnterStopping(
          {RunOutcome::State::kStopped,
           fmt::format("the drain did not finish within {} (spec.drainTimeout is {}); what "
                       "is committed stays, run the job again to go on",
                       InSeconds(2 * options_.drain_timeout + options_.drain_slack),
                       InSeconds(options_.drain_timeout))});
    } else if (now_ - asked_last_ >= kAskAgain) {
      asked_last_ = now_;
      Emit(AskDrain{});
    }
  }
  if (stage_ == Stage::kFinishing && !pending_.has_value()) {  // a failure of ours
    if (late || !AnyRunning(NodeRole::kMaster)) {
      EnterStopping({RunOutcome::State::kFailed, *failure_});
    } else if (now_ - asked_last_ >= kAskAgain) {
      asked_last_ = now_;
      Emit(AskCancel{*failure_});
    }
  } else if (stage_ == Stage::kFinishing) {
    if (late) StopRole(NodeRole::kWorker);
    if (!AnyRunning(NodeRole::kWorker)) {
      stage_ = Stage::kCollecting;
      collecting_since_ = now_;
      deadline_ = now_ + kCollectWait;
    }
  } else if (stage_ == Stage::kCollecting && (late || !AnyRunning(NodeRole::kMaster))) {
    EnterStopping(*pending_);
  }
  if (stage_ == Stage::kStopping && !AnyRunning(NodeRole::kMaster) &&
      !AnyRunning(NodeRole::kServer) && !AnyRunning(NodeRole::kWorker)) {
    stage_ = Stage::kOver;
    outcome_ = pending_;
  }
}

void Supervisor::StartDueNodes() {
  const bool starting = stage_ == Stage::kStarting || stage_ == Stage::kTraining;
  // The master first: nothing else gets far without it.
  for (NodeRole role : {NodeRole::kMaster, NodeRole::kServer, NodeRole::kWorker}) {
    const bool allowed = starting || (stage_ == Stage::kDraining && role != NodeRole::kWorker);
    for (auto& [name, node] : nodes_) {
      if (!allowed || node.role != role || !node.wanted) continue;
      if (node.state != Node::State::kWaiting || now_ < node.start_at) continue;
      node.state = Node::State::kRunning;
      node.started_at = now_;
      node.pid = 0;
      ++node.starts;
      node.progress_at_start = progress_;
      node.seen_running = false;
      node.told_to_end = false;
      node.lost_since.reset();
      Emit(StartNode{name, role, node.starts});
    }
  }
}

std::string ToString(JobPhase phase) {
  static constexpr const char* kNames[] = {"unknown",   "running", "draining",  "drained",
                                           "succeeded", "failed",  "cancelled", "stopped"};
  return kNames[static_cast<size_t>(phase)];
}

std::string ToString(RunOutcome::State state) {
  static constexpr const char* kNames[] = {"succeeded", "failed",  "drained",
                                           "cancelled", "stopped", "failed"};
  return kNames[static_cast<size_t>(state)];
}

int ExitCode(RunOutcome::State state) {
  static constexpr int kCodes[] = {0, 1, 3, 4, 3, 2};
  return kCodes[static_cast<size_t>(state)];
}

}  // namespace muster
