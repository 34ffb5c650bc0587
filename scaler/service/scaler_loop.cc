#include "scaler/service/scaler_loop.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "proto/status/joined_node.h"
#include "scaler/service/plan_file.h"

namespace muster::scaler {
namespace {

constexpr std::chrono::milliseconds kTickInterval{100};
constexpr std::chrono::milliseconds kRoundInterval{1'000};
/// If the master has not answered for this long, it is shown as away.
constexpr std::chrono::milliseconds kAwayAfter{2'000};

Decider::Options WithPaused(Decider::Options options, const Plan& plan) {
  options.paused = plan.paused;  // the plan of a new run has those of the job file
  return options;
}

/// Adds the capacity of the host, unless the options name it, and what earlier runs needed.
JobShape WithHistory(JobShape shape, const ScalerOptions& options, const NodeHost& host) {
  if (shape.machine == Resources{}) shape.machine = host.Capacity();
  shape.history = JobHistory::Earlier(options.history_directory, options.run_id);
  return shape;
}

}  // namespace

ScalerLoop::ScalerLoop(Parts parts)
    : options_(*parts.options),
      clock_(parts.clock),
      host_(parts.host),
      log_(parts.events),
      board_(parts.board),
      calls_(parts.calls),
      notify_(std::move(parts.notify)),
      started_wall_us_(static_cast<uint64_t>(parts.clock->Wall().count())),
      shape_(WithHistory(options_.shape, options_, *host_)),
      keeper_(options_.keeper, parts.adoption.plan),
      link_(std::move(parts.link)),
      sensor_(shape_),
      decider_(WithPaused(options_.decider, parts.adoption.plan),
               [this](rest::Event event) { return Tell(std::move(event)); }),
      watch_({.silent_after = kAwayAfter},
             [this](rest::Event event) { return Tell(std::move(event)); }),
      history_(options_.history_directory,
               {.run_id = options_.run_id, .job = options_.job.name, .shape = shape_}) {
  const WallTime began(static_cast<int64_t>(parts.adoption.plan.began_wall_us));
  const std::vector<rest::Event> told = log_->Events(0, UINT32_MAX).events;
  decider_.Adopt(told, began, clock_->Wall(), clock_->Now());
  watch_.Adopt(told, began);
  // If workers were given up because there was no room, they are tried again even after a restart.
  if (decider_.adopted_scale().has_value()) sensor_.OnTaken(*decider_.adopted_scale());
  for (const std::string& node : parts.adoption.died) {
    events_.push_back(host_->DeathOf(node, parts.adoption.plan.nodes.at(node).starts));
  }
}

KeeperOutcome ScalerLoop::Run() {
  while (!keeper_.outcome().has_value() && !left_) {
    Beat();
    // The first round comes before the first start, because it decides the limits of nodes.
    if (!round_at_.has_value() || clock_->Now() - *round_at_ >= kRoundInterval) Round();
    Carry(Tick{});
    CarryAll();
    calls_->RunWaiting();
    if (!keeper_.outcome().has_value()) Wait();
  }
  calls_->Close();
  if (left_) {
    log_->Flush();
    return {.state = KeeperOutcome::State::kStopped, .reason = "told to leave"};
  }
  history_.Finish(status_.has_value() && status_->state == JobState::kSucceeded);
  Round();
  if (keeper_.outcome()->state != KeeperOutcome::State::kStopped) host_->EndRun();
  return *keeper_.outcome();
}

void ScalerLoop::Beat() {
  const uint64_t one = 1;
  if (options_.beat_fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(options_.beat_fd, &one, sizeof(one));
}

void ScalerLoop::Wait() {
  std::vector<pollfd> fds;
  for (const int fd : {host_->wake_fd(), link_->wake_fd(), calls_->wake_fd(), options_.signal_fd,
                       options_.end_fd}) {
    fds.push_back({fd, POLLIN, 0});  // poll ignores -1
  }
  ::poll(fds.data(), fds.size(), static_cast<int>(kTickInterval.count()));
  for (HostReport& report : host_->TakeReports()) {
    std::visit([this](auto& event) { events_.push_back(std::move(event)); }, report);
  }
  ReadOrders();
  for (MasterLink::Answer& answer : link_->TakeAnswers()) Hear(std::move(answer));
  const uint64_t over = link_->reports_over();
  while (!untold_.empty() && untold_.begin()->first <= over) {
    events_.push_back(ExitHeard{untold_.begin()->second});
    untold_.erase(untold_.begin());
  }
}

void ScalerLoop::ReadOrders() {
  // The end is read before the signals, because the sender of the end sends a signal afterwards.
  uint64_t count = 0;
  if (options_.end_fd >= 0 && ::read(options_.end_fd, &count, sizeof(count)) == sizeof(count)) {
    Log(LogLevel::kInfo, "the run is over: ending every node");
    ends_ = true;
    events_.push_back(StopWanted{});
  }
  signalfd_siginfo info;
  while (options_.signal_fd >= 0 &&
         ::read(options_.signal_fd, &info, sizeof(info)) == sizeof(info)) {
    if (ends_) continue;
    Log(LogLevel::kInfo, "signal {}: leaving the nodes to another scaler", info.ssi_signo);
    left_ = true;
  }
}

void ScalerLoop::Hear(MasterLink::Answer answer) {
  for (const PartitionList& page : answer.partitions) {
    heat_.OnPage(page, answer.asked_at);
  }
  sensor_.OnStatus(answer.status, answer.asked_at);
  watch_.OnStatus(answer.status, clock_->Now());
  events_.push_back(MasterAnswered{ToView(answer.status), answer.asked_at});
  const bool was_away = !status_.has_value() || clock_->Now() - answered_at_ >= kAwayAfter;
  if (was_away) round_at_.reset();  // so waiting calls need not wait for the next second
  answered_at_ = answer.asked_at;
  answered_wall_us_ = static_cast<uint64_t>(clock_->Wall().count());
  status_ = std::move(answer.status);
}

void ScalerLoop::CarryAll() {
  while (!events_.empty()) {
    KeeperEvent event = std::move(events_.front());
    events_.pop_front();
    NodeExited* const exited = std::get_if<NodeExited>(&event);
    if (exited != nullptr) Sense(exited);
    Carry(event);
    // Decides before the master hears of the exit, so that the limits of the next start are known
    // by then.
    if (exited != nullptr) Decide();
  }
}

void ScalerLoop::Sense(NodeExited* exited) {
  // A process that was killed before it spoke to this scaler has told an earlier scaler its pid.
  if (exited->pid == 0) exited->pid = keeper_.plan().nodes.at(exited->node).pid;
  for (const KeptNode& kept : keeper_.nodes()) {
    if (kept.name == exited->node) sensor_.OnExit(*exited, kept, clock_->Now());
  }
}

void ScalerLoop::Carry(const KeeperEvent& event) {
  const std::vector<KeeperEffect> effects = keeper_.Step(event, clock_->Now());
  SavePlan();
  for (const KeeperEffect& effect : effects) {
    std::visit([this](const auto& e) { Do(e); }, effect);
  }
}

/// A full disk must not prevent restarts of nodes, so a failed write is tried again later. Until
/// then, the nodes' sockets show which ones run.
void ScalerLoop::SavePlan() {
  Plan plan = keeper_.plan();
  if (saved_ == plan) return;
  const absl::Status written = WritePlan(options_.directory + "/plan.json", plan);
  if (written.ok()) {
    saved_ = std::move(plan);
  } else if (!std::exchange(save_failed_, true)) {
    Log(LogLevel::kError, "{}", Message(written));
  }
  if (written.ok()) save_failed_ = false;
}

void ScalerLoop::Round() {
  round_at_ = clock_->Now();
  log_->Flush();
  if (std::string why = host_->WhyAbandoned(); !why.empty()) {
    events_.push_back(RunAbandoned{std::move(why)});
  }
  watch_.OnTime(round_at_.value());
  Measure();
  Decide();
  Draw();
}

void ScalerLoop::Measure() {
  std::vector<NodeReading> readings;
  for (const KeptNode& node : keeper_.nodes()) {
    const absl::StatusOr<NodeUsage> usage = host_->Usage(node.name);
    if (usage.ok()) readings.push_back({node.name, node.starts, *usage});
  }
  sensor_.OnReading(std::move(readings), clock_->Now(), clock_->Wall());
  sensor_.OnMachine(host_->Idle(), clock_->Now());
  MeasureOwn();
}

void ScalerLoop::MeasureOwn() {
  if (!status_.has_value()) return;
  for (const NodeStatus& node : status_->nodes) {
    // Our host cannot measure nodes that other machines run.
    if (IsJoined(node) && node.own_usage.has_value()) {
      own_.OnReading(node.name, node.pid, ToNodeUsage(*node.own_usage), clock_->Now());
    }
    if (node.role != ToString(NodeRole::kMaster) && node.role != ToString(NodeRole::kScaler)) {
      continue;
    }
    const absl::StatusOr<NodeUsage> usage = host_->UsageOfProcess(node.pid);
    if (usage.ok()) {
      own_.OnReading(node.name, node.pid, *usage, clock_->Now());
    } else {
      own_.Forget(node.name);
    }
  }
}

void ScalerLoop::Decide() {
  view_ = &sensor_.View(keeper_.nodes(), clock_->Now());
  history_.Append(*view_, clock_->Wall());
  CarryOrders(decider_.Step(*view_));
}

void ScalerLoop::CarryOrders(const std::vector<Ordered>& orders) {
  for (const Ordered& ordered : orders) {
    const uint64_t outer = std::exchange(carrying_, ordered.event_id);
    Carry(ordered.order);
    carrying_ = outer;
    if (ordered.taken.has_value()) sensor_.OnTaken(*ordered.taken);
  }
}

void ScalerLoop::Draw() {
  const bool reachable = status_.has_value() && clock_->Now() - answered_at_ < kAwayAfter;
  Picture picture = DrawPicture({.job_name = options_.job.name,
                                 .job_id = options_.job.id,
                                 .status = status_.has_value() ? &*status_ : nullptr,
                                 .seen_wall_us = answered_wall_us_,
                                 .master_reachable = reachable,
                                 .kept = keeper_.nodes(),
                                 .workers_wanted = keeper_.plan().workers,
                                 .last_event_id = log_->last_id(),
                                 .scaler_started_wall_us = started_wall_us_,
                                 .limits_remark = host_->limits_remark(),
                                 .own = &own_},
                                sensor_, shape_);
  for (const PartitionRate& rate : heat_.Rates()) picture.partition_rates[rate.partition] = rate;
  picture.policies.policies = decider_.policies();
  board_->Hang(std::move(picture));
}

rest::Event ScalerLoop::Tell(rest::Event event) {
  rest::Event told = log_->Append(std::move(event));
  Log(LogLevel::kInfo, "event #{}: {} {}{}{}: {}", told.id, told.kind, told.target,
      told.action.empty() ? "" : " ", told.action, told.because);
  notify_();
  return told;
}

void ScalerLoop::Do(const StartNode& effect) {
  const absl::Status status = host_->Start(effect);
  if (status.ok()) return;
  Log(LogLevel::kError, "{}", Message(status));
  events_.push_back(NotBegun(effect.node, status));
}

void ScalerLoop::Do(const KillNode& effect) {
  decider_.Tell(Action::kRestart, effect.node, effect.why, *view_);
  host_->Kill(effect.node);
}

void ScalerLoop::Do(const DumpNode& effect) {
  const absl::Status dumped = host_->DumpStacks(effect.node);
  if (dumped.ok()) return;
  Log(LogLevel::kWarning, "no stacks of {}: {}", effect.node, Message(dumped));
  // The failure is recorded only. A restart that follows the stacks must not wait for them for
  // ever.
  if (carrying_ != 0) decider_.Fail(carrying_, std::string(Message(dumped)));
}

void ScalerLoop::Do(const SetLimits& effect) {
  const absl::Status limited = host_->SetLimits(effect.node, effect.limits);
  // A node that has just ended starts again with these limits.
  if (limited.ok() || absl::IsNotFound(limited)) return;
  Log(LogLevel::kWarning, "{}: {}", effect.node, Message(limited));
  Carry(LimitRefused{effect.node, effect.limits});
  if (carrying_ != 0) decider_.Fail(carrying_, std::string(Message(limited)));
}

void ScalerLoop::Do(const AskCancel& effect) {
  decider_.Tell(Action::kStopJob, "job", effect.reason, *view_);
  link_->AskFail(effect.reason);
}

void ScalerLoop::Do(const AskDrainJob& effect) {
  decider_.Tell(Action::kDrain, "job", effect.why, *view_);
  link_->AskDrain();
}

void ScalerLoop::Do(const RestartDelayed& effect) {
  decider_.Tell(Action::kRestart, effect.node, effect.why, *view_);
}

void ScalerLoop::Do(const WorkerSentAway& effect) {
  CarryOrders(decider_.SentAway(effect.node, *view_));
}

void ScalerLoop::Do(const Note& effect) {
  Log(LogLevel::kInfo, "{}", effect.text);
}

void ScalerLoop::Do(const TellMaster& effect) {
  const uint64_t number = link_->Tell(effect);
  if (effect.exited) untold_.emplace(number, effect.node);
}

HumanFacts ScalerLoop::Facts() const {
  HumanFacts facts;
  facts.limits_remark = host_->limits_remark();
  facts.paused = decider_.paused();
  facts.workers = keeper_.plan().workers;
  for (const rest::Policy& policy : decider_.policies()) facts.policies.push_back(policy.name);
  if (status_.has_value()) {
    for (const NodeStatus& node : status_->nodes) {
      if (IsJoined(node)) facts.joined.emplace(node.name, node.host);
    }
  }
  return facts;
}

absl::StatusOr<rest::Event> ScalerLoop::Take(const Wish& wish) {
  // The order is judged by the present state, and not by that of a second ago.
  Decide();
  MUSTER_ASSIGN_OR_RETURN(const Granted granted, Judge(wish, *view_, Facts()));
  Decider::Taken taken = decider_.Take(granted, *view_);
  CarryOrders(taken.orders);
  Draw();
  return std::move(taken.event);
}

void ScalerLoop::FailOrder(uint64_t event_id, const std::string& why) {
  decider_.Fail(event_id, why);
}

rest::Samples ScalerLoop::GiveSamples(const rest::SampleQuery& query) {
  return sensor_.Since(query.node, query.after_wall_us, query.window_s);
}

}  // namespace muster::scaler
