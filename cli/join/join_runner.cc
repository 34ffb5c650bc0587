#include "cli/join/join_runner.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kTickInterval{100};

scaler::Plan PlanOf(const JoinPlace& place) {
  scaler::Plan plan{.run_id = place.run_id,
                    .began_wall_us = 0,
                    .workers = place.role == NodeRole::kWorker ? 1u : 0u,
                    .nodes = {}};
  plan.nodes.emplace(place.node,
                     scaler::NodePlan{.role = place.role, .starts = place.first_start - 1});
  return plan;
}

}  // namespace

JoinRunner::JoinRunner(Parts parts)
    : parts_(std::move(parts)),
      keeper_(parts_.place.keeper, PlanOf(parts_.place)),
      answered_at_(parts_.clock->Now()) {}

JoinRunner::End JoinRunner::Run() {
  while (true) {
    Carry(Tick{});
    while (!events_.empty()) {
      const scaler::KeeperEvent event = std::move(events_.front());
      events_.pop_front();
      Carry(event);
    }
    if (const std::optional<End> end = Ended()) return *end;
    Wait();
  }
}

std::optional<JoinRunner::End> JoinRunner::Ended() const {
  const std::optional<scaler::KeeperOutcome>& outcome = keeper_.outcome();
  if (outcome.has_value()) {
    if (outcome->state == scaler::KeeperOutcome::State::kBadInput) return End::kBadInput;
    return because_.value_or(End::kJobOver);
  }
  for (const scaler::KeptNode& node : keeper_.nodes()) {
    if (node.state != scaler::KeptNode::State::kFinished) return std::nullopt;
  }
  return because_.value_or(End::kLeft);
}

void JoinRunner::Wait() {
  std::vector<pollfd> fds;
  for (const int fd : {parts_.host->wake_fd(), parts_.link->wake_fd(), parts_.signal_fd}) {
    fds.push_back({fd, POLLIN, 0});
  }
  ::poll(fds.data(), fds.size(), static_cast<int>(kTickInterval.count()));
  for (HostReport& report : parts_.host->TakeReports()) {
    // The node may have ended because another process has its name. So the master is asked before
    // the node starts again.
    if (std::holds_alternative<NodeExited>(report)) place_unsure_ = true;
    std::visit([this](auto& event) { events_.push_back(std::move(event)); }, report);
  }
  ReadSignals();
  for (const MasterLink::Answer& answer : parts_.link->TakeAnswers()) Hear(answer);
  const uint64_t over = parts_.link->reports_over();
  while (!untold_.empty() && untold_.begin()->first <= over) {
    events_.push_back(scaler::ExitHeard{untold_.begin()->second});
    untold_.erase(untold_.begin());
  }
  if (!because_.has_value() && parts_.clock->Now() - answered_at_ > parts_.patience) {
    because_ = End::kAway;
    events_.push_back(StopWanted{});
  }
}

void JoinRunner::ReadSignals() {
  signalfd_siginfo info;
  while (parts_.signal_fd >= 0 && ::read(parts_.signal_fd, &info, sizeof(info)) == sizeof(info)) {
    const bool drains = ++signals_ == 1 && parts_.place.role == NodeRole::kWorker;
    Log(LogLevel::kInfo, "signal {}: {} {}", info.ssi_signo, parts_.place.node,
        drains ? "finishes its shards and leaves; a second signal ends it" : "ends");
    if (drains) {
      events_.push_back(scaler::Order(scaler::EndNode{.node = parts_.place.node}));
    } else {
      // A server that is told to end asks for snapshots of its partitions first.
      if (!because_.has_value()) because_ = End::kLeft;
      events_.push_back(StopWanted{});
    }
  }
}

void JoinRunner::Hear(const MasterLink::Answer& answer) {
  answered_at_ = answer.asked_at;
  const uint64_t incarnation = answer.status.master_incarnation;
  // After the job's end, the master may go before it answers another question, and the place does
  // not matter any more.
  const bool ours = !place_unsure_ || IsTerminal(answer.status.state);
  if (incarnation_ != incarnation || !ours) {
    // This is another process of the master, perhaps of another run. If the run is new, it counts
    // the node's process as dead, so that process must end.
    const absl::StatusOr<std::string> run = parts_.ask_run();
    if (absl::IsFailedPrecondition(run.status())) return GiveUp(std::string(Message(run.status())));
    if (!run.ok()) return;  // asks again after the next answer
    incarnation_ = incarnation;
    place_unsure_ = false;
    if (*run != parts_.place.run_id && !because_.has_value()) {
      Log(LogLevel::kInfo, "the job was run again; {} starts again", parts_.place.node);
      because_ = End::kNewRun;
      events_.push_back(StopWanted{});
    }
  }
  if (because_ == End::kNewRun) return;
  events_.push_back(MasterAnswered{ToView(answer.status), answer.asked_at});
}

void JoinRunner::Carry(const scaler::KeeperEvent& event) {
  for (const scaler::KeeperEffect& effect : keeper_.Step(event, parts_.clock->Now())) {
    std::visit([this](const auto& e) { Do(e); }, effect);
  }
}

void JoinRunner::Do(const StartNode& effect) {
  const absl::Status status = parts_.host->Start(effect);
  if (status.ok()) return;
  Log(LogLevel::kError, "{}", Message(status));
  events_.push_back(NotBegun(effect.node, status));
}

void JoinRunner::Do(const scaler::DumpNode& effect) {
  const absl::Status dumped = parts_.host->DumpStacks(effect.node);
  if (!dumped.ok()) Log(LogLevel::kWarning, "no stacks of {}: {}", effect.node, Message(dumped));
}

void JoinRunner::Do(const AskCancel& effect) {
  GiveUp(effect.reason);
}

void JoinRunner::GiveUp(std::string reason) {
  // The job may continue with other nodes, so only this place is given up.
  if (because_.has_value()) return;
  because_ = End::kCrashed;
  reason_ = std::move(reason);
  events_.push_back(StopWanted{});
}

void JoinRunner::Do(const scaler::RestartDelayed& effect) {
  Log(LogLevel::kWarning, "{}", effect.why);
}

void JoinRunner::Do(const Note& effect) {
  Log(LogLevel::kInfo, "{}", effect.text);
}

void JoinRunner::Do(TellMaster effect) {
  effect.host = parts_.place.host;
  const uint64_t number = parts_.link->Tell(effect);
  if (effect.exited) untold_.emplace(number, effect.node);
}

}  // namespace muster
