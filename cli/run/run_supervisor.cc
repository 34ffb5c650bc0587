#include "cli/run/run_supervisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/words/exit_codes.h"
#include "cli/show/output.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kAskMasterAgain{1'000};
constexpr std::chrono::milliseconds kCollectWait{3'000};
/// Steps come about every 100 ms. If no step came for this long, this process stood still.
constexpr std::chrono::milliseconds kPauseMin{2'000};

RunOutcome::State ToOutcome(const MasterView& view) {
  switch (view.state) {
    case JobState::kSucceeded:
      return RunOutcome::State::kSucceeded;
    case JobState::kDrained:
      return RunOutcome::State::kDrained;
    case JobState::kCancelled:
      return RunOutcome::State::kCancelled;
    default:
      return view.unrestorable ? RunOutcome::State::kUnrestorable : RunOutcome::State::kFailed;
  }
}

}  // namespace

RunSupervisor::RunSupervisor(const RunSupervisorOptions& options)
    : options_(options),
      master_{.role = NodeRole::kMaster,
              .policy = RestartPolicy(options.restarts),
              .shortages = RestartPolicy(RestartPolicy::Endless(options.restarts)),
              .wanted = true,
              .starts_before = options.master_starts_before},
      scaler_{.role = NodeRole::kScaler,
              .policy = RestartPolicy(options.restarts),
              .shortages = RestartPolicy(RestartPolicy::Endless(options.restarts)),
              .starts_before = options.scaler_starts_before} {}

std::vector<RunEffect> RunSupervisor::Step(const RunEvent& event, TimePoint now) {
  ForgiveOwnPause(now);
  effects_.clear();
  std::visit([this](const auto& e) { On(e); }, event);
  Advance();
  StartDue();
  return std::move(effects_);
}

void RunSupervisor::ForgiveOwnPause(TimePoint now) {
  // Only what exceeds the minimum counts, so silence is also found if every step is late.
  const std::chrono::nanoseconds gap = now - std::exchange(now_, now) - kPauseMin;
  if (gap.count() <= 0) return;
  if (deadline_.has_value()) *deadline_ += gap;
  for (Child* child : {&master_, &scaler_}) child->last_heard += gap;
}

RunSupervisor::Child& RunSupervisor::ChildOf(const std::string& node) {
  MUSTER_CHECK_MSG(node == ToString(NodeRole::kMaster) || node == ToString(NodeRole::kScaler),
                   node);
  return node == ToString(NodeRole::kMaster) ? master_ : scaler_;
}

uint32_t RunSupervisor::restarts(NodeRole role) const {
  const Child& child = role == NodeRole::kMaster ? master_ : scaler_;
  return std::max(AllStarts(child), 1u) - 1;
}

void RunSupervisor::On(const NodeStarted& event) {
  Child& child = ChildOf(event.node);
  child.shortages.OnProgress();
  Emit(TellMaster{.node = event.node,
                  .role = child.role,
                  .start = StartNumber(AllStarts(child)),
                  .pid = event.pid});
}

bool RunSupervisor::KeptAlive(const Child& child) const {
  switch (stage_) {
    case Stage::kStarting:
    case Stage::kTraining:
    case Stage::kDraining:
      return true;
    case Stage::kFinishing:
      // The scaler still has to end the nodes.
      return child.role == NodeRole::kScaler && pending_.has_value();
    default:
      return false;
  }
}

void RunSupervisor::On(const NodeExited& exited) {
  Child& child = ChildOf(exited.node);
  NodeExited event = exited;
  event.killed_for = child.killed_for;
  MUSTER_CHECK_MSG(Running(child), event.node);
  Emit(ExitReport(event, child.role, AllStarts(child)));
  child.exited_at = now_;
  // The scaler ends by itself after the job's end. It may know of the end before this process does.
  const bool ended_well =
      child.role == NodeRole::kScaler && Classify(event.exit) == ExitKind::kClean;
  if (child.role == NodeRole::kMaster && event.exit.signal == 0 &&
      event.exit.code == kTakenOverExit && stage_ < Stage::kStopping) {
    EnterTakenOver(event);
  } else if (ended_well || !KeptAlive(child)) {
    child.state = Child::State::kFinished;
  } else {
    Restart(&child, event);
  }
}

void RunSupervisor::Restart(Child* child, const NodeExited& event) {
  child->state = Child::State::kWaiting;
  const bool refused = event.exit.signal == 0 && event.exit.code == kBadInputExit;
  if (refused && child->role == NodeRole::kMaster && !answered_) {
    child->state = Child::State::kFinished;
    EnterStopping({RunOutcome::State::kBadInput,
                   fmt::format("the master refused to start:{}", Indented(event.last_words))});
    return;
  }
  if (refused && child->role == NodeRole::kScaler) {
    // The scaler's own message says what was refused.
    std::string words = event.last_words;
    while (!words.empty() && words.back() == '\n') words.pop_back();
    child->state = Child::State::kFinished;
    EnterStopping({RunOutcome::State::kBadInput, std::move(words)});
    return;
  }
  if (event.not_started) {
    const std::chrono::milliseconds delay =
        child->shortages.OnExit(RestartPolicy::Progress::kNone).delay;
    child->start_at = now_ + delay;
    Emit(Note{RestartNote(event, delay), /*answer=*/true});
    return;
  }
  // Progress of the job counts for a process only if that process was there to take part.
  const bool progressed = child->progress_at_start != progress_ && child->heard;
  const RestartPolicy::Decision decision = child->policy.OnExit(
      progressed ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  if (decision.crash_loop) {
    child->state = Child::State::kFinished;
    GiveUp(CrashLoopReason(event, decision.exits));
    return;
  }
  child->start_at = now_ + decision.delay;
  // If the process did nothing in this life, the note shows its last words, because they say why
  // the run does not begin.
  std::string note = RestartNote(event, decision.delay);
  if (!child->heard) note += Indented(event.last_words);
  Emit(Note{std::move(note), /*answer=*/!child->heard});
}

void RunSupervisor::GiveUp(std::string reason) {
  // Later failures do not change the result of a job that has ended.
  if (failure_.has_value() || pending_.has_value()) return;
  failure_ = std::move(reason);
  // Only the first line is shown, because the summary has the full text.
  Emit(Note{fmt::format("giving up: {}", FirstLine(*failure_))});
  deadline_ = now_ + options_.cancel_wait;
  // If the master itself keeps crashing, it cannot be asked.
  if (!Running(master_)) {
    EnterStopping({RunOutcome::State::kFailed, *failure_});
    return;
  }
  stage_ = Stage::kFinishing;
  asked_last_ = now_;
  Emit(AskCancel{*failure_});
}

bool RunSupervisor::HearMaster(TimePoint asked_at) {
  // An answer of an earlier process says nothing about the present one.
  if (!Running(master_) || asked_at < master_.started_at) return false;
  master_.last_heard = now_;
  master_.heard = true;
  return true;
}

void RunSupervisor::On(const MasterRefused& event) {
  HearMaster(event.asked_at);
}

void RunSupervisor::On(const MasterAnswered& event) {
  if (!HearMaster(event.asked_at)) return;
  TakeView(event.view);
  view_asked_at_ = event.asked_at;
  if (!answered_) {
    answered_ = true;
    Emit(Note{"the master answers"});
  }
  if (stage_ == Stage::kStarting) {
    stage_ = Stage::kTraining;
    scaler_.wanted = true;
    scaler_.start_at = now_;
  }
  if (stage_ == Stage::kTraining && event.view.state == JobState::kDraining) EnterDraining();
  if (IsTerminal(event.view.state)) {
    EnterFinishing(event.view);
  } else if (scaler_.state == Child::State::kFinished && event.asked_at >= scaler_.exited_at &&
             (stage_ == Stage::kTraining || stage_ == Stage::kDraining)) {
    // The scaler ended though the job goes on: a user has ended it by hand.
    scaler_.state = Child::State::kWaiting;
    scaler_.start_at = now_;
  }
  if (stage_ == Stage::kCollecting) Collect();
}

void RunSupervisor::Collect() {
  // An answer to a question before the scaler's end cannot know who heard of the end since then.
  if (view_asked_at_ < scaler_.exited_at) return;
  if (view_->end_unheard_by.empty()) return EnterStopping(*pending_);
  deadline_ = collecting_since_ + options_.joined_wait;
  if (now_ - collecting_since_ < kCollectWait || std::exchange(told_of_unheard_, true)) return;
  Emit(Note{fmt::format("the job is over; the master stays up to {} until it is known to {}",
                        InSeconds(options_.joined_wait), fmt::join(view_->end_unheard_by, ", ")),
            /*answer=*/true});
}

void RunSupervisor::TakeView(const MasterView& view) {
  if (view_.has_value() && HasProgressed(*view_, view)) ++progress_;
  const bool waited = view_.has_value() && !view_->reason.empty();
  if (!IsTerminal(view.state) && !view.reason.empty() && !waited) {
    // This is not progress, so it is also shown when progress lines are off.
    Emit(Note{fmt::format("the job waits: {}", view.reason), /*answer=*/true});
  }
  view_ = view;
}

void RunSupervisor::EnterFinishing(const MasterView& view) {
  const bool first = stage_ == Stage::kTraining || stage_ == Stage::kDraining ||
                     (stage_ == Stage::kFinishing && !pending_.has_value());
  if (!first) return;
  stage_ = Stage::kFinishing;
  deadline_ = now_ + options_.finish_wait;
  pending_ = RunOutcome{ToOutcome(view), view.reason};
  if (failure_.has_value()) {
    pending_ = RunOutcome{RunOutcome::State::kFailed, *failure_};
  } else if (view.state == JobState::kFailed) {
    Emit(Note{fmt::format("giving up: {}", FirstLine(view.reason))});
  }
}

void RunSupervisor::On(const ScalerBeat&) {
  if (!Running(scaler_)) return;
  scaler_.last_heard = now_;
  scaler_.heard = true;
}

void RunSupervisor::On(const MasterBeat&) {
  if (Running(master_)) master_.last_heard = now_;
}

void RunSupervisor::EnterDraining() {
  stage_ = Stage::kDraining;
  // This is longer than the two phases of the master's drain, leases and snapshots. If the servers
  // were stopped earlier, there would be no snapshots.
  deadline_ = now_ + 2 * options_.drain_timeout + options_.drain_slack;
  asked_last_ = now_;
}

void RunSupervisor::WatchSilence() {
  if (stage_ >= Stage::kStopping) return;
  const auto watch = [this](Child* child, std::chrono::milliseconds silence_max,
                            std::chrono::milliseconds start_max, std::string_view what,
                            std::string_view unheard) {
    if (!Running(*child)) return;
    const std::chrono::milliseconds patience = child->heard ? silence_max : start_max;
    if (now_ - child->last_heard < patience) return;
    Kill(child, fmt::format("{}{} for {}", what, child->heard ? "" : unheard, InSeconds(patience)));
  };
  // A silent process is killed before the next one starts. A paused master still holds the
  // journal's lock, and a paused scaler would act at the same time as the next one.
  watch(&master_, options_.master_silence_max, options_.master_start_max, "it did not answer",
        ", and read none of its data,");
  watch(&scaler_, options_.scaler_silence_max, options_.scaler_start_max, "it stood still", "");
}

void RunSupervisor::Kill(Child* child, std::string why) {
  if (std::exchange(child->told_to_end, true)) return;
  Emit(Note{fmt::format("killing {}: {}", ToString(child->role), why)});
  child->killed_for = why;
  Emit(KillNode{std::string(ToString(child->role)), std::move(why)});
}

void RunSupervisor::On(const DrainWanted&) {
  if (stage_ == Stage::kStarting) {
    EnterStopping({RunOutcome::State::kStopped, "stopped before the master answered"});
  } else if (stage_ == Stage::kTraining) {
    EnterDraining();
    Emit(Note{"draining: no new shards are handed out; press Ctrl-C again to stop at once",
              /*answer=*/true});
    Emit(AskDrain{});
  }
}

void RunSupervisor::On(const LeaveWanted&) {
  if (stage_ >= Stage::kStopping) return;
  // Even if the job is over already, the process that continues the run will see that.
  nodes_ended_ = true;
  Emit(Note{"this process leaves; workers and servers live on, and the run continues elsewhere",
            /*answer=*/true});
  EnterStopping({RunOutcome::State::kLeft, "this process was told to leave; the run continues"});
}

void RunSupervisor::On(const StopWanted&) {
  if (stage_ == Stage::kOver) return;
  if (stage_ != Stage::kStopping) {
    EnterStopping(pending_.value_or(
        RunOutcome{RunOutcome::State::kStopped,
                   "the user stopped it at once; run the job again to continue"}));
  }
  for (Child* child : {&scaler_, &master_}) {
    if (Running(*child)) Emit(KillNode{std::string(ToString(child->role)), "stopped by the user"});
  }
  if (!std::exchange(nodes_ended_, true)) Emit(EndNodes{});
}

void RunSupervisor::Stop(Child* child, std::chrono::milliseconds timeout) {
  if (!Running(*child) || std::exchange(child->told_to_end, true)) return;
  Emit(StopNode{std::string(ToString(child->role)), timeout});
}

void RunSupervisor::EnterStopping(RunOutcome outcome) {
  stage_ = Stage::kStopping;
  pending_ = std::move(outcome);
  const bool over = view_.has_value() && IsTerminal(view_->state);
  if (options_.continues_elsewhere && pending_->state == RunOutcome::State::kFailed && !over) {
    pending_->state = RunOutcome::State::kGivenUp;
    nodes_ended_ = true;
    Emit(Note{"the job is not over: workers and servers live on, and the run continues elsewhere"});
  }
  if (Running(scaler_) && !nodes_ended_) Emit(AskEndNodes{});
  Stop(&scaler_, options_.scaler_stop_timeout);
}

void RunSupervisor::EnterTakenOver(const NodeExited& event) {
  master_.state = Child::State::kFinished;
  stage_ = Stage::kStopping;
  pending_ = RunOutcome{RunOutcome::State::kTakenOver,
                        fmt::format("the master ended:{}", Indented(event.last_words))};
  // Nodes on other machines now belong to the other master. Those on this machine end together with
  // this process.
  nodes_ended_ = true;
  if (Running(scaler_)) Kill(&scaler_, "another master has taken over the job");
}

void RunSupervisor::Advance() {
  WatchSilence();
  const bool late = deadline_.has_value() && now_ >= *deadline_;
  if (stage_ == Stage::kDraining) {
    if (late) {
      EnterStopping(
          {RunOutcome::State::kStopped,
           fmt::format("the drain did not finish within {} (spec.drainTimeout is {}). Committed "
                       "work stays; run the job again to continue",
                       InSeconds(2 * options_.drain_timeout + options_.drain_slack),
                       InSeconds(options_.drain_timeout))});
    } else if (now_ - asked_last_ >= kAskMasterAgain) {
      asked_last_ = now_;
      Emit(AskDrain{});
    }
  }
  if (stage_ == Stage::kFinishing) {
    AdvanceFinishing(late);
  } else if (stage_ == Stage::kCollecting && (late || !Running(master_))) {
    EnterStopping(*pending_);
  }
  if (stage_ != Stage::kStopping || Running(scaler_)) return;
  // The master ends last, so that it hears of every exit. Processes that the scaler has left behind
  // end now.
  if (!std::exchange(nodes_ended_, true)) Emit(EndNodes{});
  Stop(&master_, options_.stop_timeout);
  if (Running(master_)) return;
  stage_ = Stage::kOver;
  outcome_ = pending_;
}

void RunSupervisor::AdvanceFinishing(bool late) {
  if (!pending_
           .has_value()) {  // this process found a failure, and the master has not confirmed it yet
    if (late || !Running(master_)) {
      EnterStopping({RunOutcome::State::kFailed, *failure_});
    } else if (now_ - asked_last_ >= kAskMasterAgain) {
      asked_last_ = now_;
      Emit(AskCancel{*failure_});
    }
  } else if (late || !Running(master_)) {
    // Usually the scaler hears of the job's end from the master. Without a master, this process
    // tells it, and the scaler ends the nodes.
    EnterStopping(*pending_);
  } else if (scaler_.state == Child::State::kFinished || scaler_.starts == 0) {
    stage_ = Stage::kCollecting;
    collecting_since_ = now_;
    deadline_ = now_ + kCollectWait;
    Collect();
  }
}

void RunSupervisor::StartDue() {
  // The master starts first, because the scaler needs it.
  for (Child* child : {&master_, &scaler_}) {
    if (child->state != Child::State::kWaiting || !child->wanted || !KeptAlive(*child)) continue;
    if (now_ < child->start_at) continue;
    child->state = Child::State::kRunning;
    child->started_at = now_;
    child->last_heard = now_;
    ++child->starts;
    child->progress_at_start = progress_;
    child->heard = false;
    child->told_to_end = false;
    child->killed_for.clear();
    Emit(StartNode{std::string(ToString(child->role)), child->role, child->starts});
  }
}

std::string ToString(RunOutcome::State state) {
  static constexpr const char* kNames[] = {"succeeded", "failed",    "drained", "cancelled",
                                           "stopped",   "failed",    "failed",  "left",
                                           "given up",  "taken over"};
  return kNames[static_cast<size_t>(state)];
}

int ExitCode(RunOutcome::State state) {
  static constexpr int kCodes[] = {
      0, 1, 3, 4, 3, 2, 7, kLeftExit, kExitUnreachable, kTakenOverExit};
  return kCodes[static_cast<size_t>(state)];
}

}  // namespace muster
