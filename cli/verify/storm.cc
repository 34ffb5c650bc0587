#include "cli/verify/storm.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "cli/state/job_source.h"
#include "proto/messages/node_state.h"

namespace muster::verify {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kRun[] = "run";
constexpr milliseconds kTick{10};
constexpr milliseconds kPollInterval{20};
constexpr milliseconds kAskDeadline{1'000};
constexpr milliseconds kProgressInterval{2'000};
constexpr milliseconds kRecoveredInterval{100};
/// The longest wait until the job has begun, and until a process that is the next target was
/// started again.
constexpr seconds kPatience{60};
/// The time from the last fault to the job's end, in addition to the time for its records.
constexpr seconds kFinishPatience{180};
constexpr uint64_t kRecordsPerSecondMin = 2'000;

double Milliseconds(TimePoint from, TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

uint64_t Nanoseconds(TimePoint at) {
  return static_cast<uint64_t>(at.time_since_epoch().count());
}

size_t Index(Role role) {
  return static_cast<size_t>(role);
}

bool IsSuccessor(const NodeStatus& node, const NodeProcess& killed) {
  return node.name == killed.name && node.state == NodeState::kRunning &&
         StartNumber(node.start) > killed.start;
}

/// True if the next process of a killed server has all its partitions.
bool ServesAgain(const JobStatus& status, const NodeProcess& killed) {
  return std::any_of(status.nodes.begin(), status.nodes.end(), [&](const auto& node) {
    return IsSuccessor(node, killed) && node.server && node.server->partitions > 0 &&
           node.server->partitions_serving == node.server->partitions;
  });
}

/// True if the master has heard of the scaler that follows a killed one.
bool ScalesAgain(const JobStatus& status, const NodeProcess& killed) {
  return std::any_of(status.nodes.begin(), status.nodes.end(),
                     [&](const auto& node) { return IsSuccessor(node, killed); });
}

}  // namespace

uint32_t Sum(const ByRole& counts) {
  return std::accumulate(counts.begin(), counts.end(), 0U);
}

Storm::Storm(Options options, VerifyJob* job, const Clock* clock)
    : options_(std::move(options)),
      job_(job),
      clock_(clock),
      started_at_(clock->Now()),
      rng_(HashWords(options_.plan.seed, 1)),
      plan_(options_.plan),
      launcher_({.program = options_.programs.muster, .log_directory = job->folder()}),
      deadline_(started_at_ + kPatience),
      said_at_(started_at_) {}

uint32_t Storm::applied() const {
  return Sum(result_.kills) + Sum(result_.pauses);
}

StormResult Storm::Run() {
  NodeCommand command{.name = kRun,
                      .command = {options_.programs.muster, "run", job_->job_file()},
                      .environment = {},
                      .working_directory = job_->folder()};
  command.command.push_back("--no-progress");
  command.command.insert(command.command.end(), options_.run_flags.begin(),
                         options_.run_flags.end());
  if (const absl::Status started = launcher_.Start(command); !started.ok()) {
    result_.problem = Message(started);
    return result_;
  }
  while (!ended_) {
    Act(clock_->Now());
    Wait();
  }
  link_.reset();
  result_.elapsed = std::chrono::duration_cast<milliseconds>(clock_->Now() - started_at_);
  return result_;
}

void Storm::Wait() {
  std::vector<int> wake_fds = {options_.signal_fd};
  if (link_ != nullptr) wake_fds.push_back(link_->wake_fd());
  for (const LaunchReport& report : launcher_.Wait(kTick, wake_fds)) {
    if (const auto* exited = std::get_if<NodeExited>(&report)) HandleExit(*exited);
  }
  ReadSignals();
  if (link_ != nullptr) ReadAnswers();
}

void Storm::Act(TimePoint now) {
  Resume(now);
  SayProgress(now);
  switch (phase_) {
    case Phase::kStarting:
      return Begin(now);
    case Phase::kFaults:
      return ApplyFaults(now);
    case Phase::kPausesEnd:
      if (!paused_.empty() || !GotOverFaults(now)) return;
      Say(now, "all faults are over; the job runs to its end at full speed");
      job_->Hurry();
      phase_ = Phase::kFinishing;
      deadline_ =
          now + kFinishPatience +
          seconds(job_->workload().records * job_->workload().epochs / kRecordsPerSecondMin);
      return;
    case Phase::kFinishing:
      if (now > deadline_) GiveUp("the job did not end after the last fault");
      return;
    case Phase::kEnding:
      return;
  }
}

/// Faults begin with the first record. Earlier ones would hit an empty job.
void Storm::Begin(TimePoint now) {
  Connect();
  if (status_.has_value() && TotalsOf(*status_).done > 0) {
    phase_ = Phase::kFaults;
    last_fault_at_ = now;
    Say(now, fmt::format("the job runs, {} faults follow", plan_.total()));
  } else if (now > deadline_) {
    GiveUp("the job did not begin");
  }
}

void Storm::ApplyFaults(TimePoint now) {
  if (!fault_.has_value()) {
    fault_ = plan_.Next(result_.paths);
    deadline_ = now + kPatience;
  }
  if (!fault_.has_value()) {
    phase_ = Phase::kPausesEnd;
    deadline_ = now + kPatience;
  } else if (now >= last_fault_at_ + fault_->wait && Strike(*fault_, now)) {
    fault_.reset();
    last_fault_at_ = now;
  } else if (now > deadline_) {
    GiveUp(fmt::format("no {} process ran for {} s", ToString(fault_->role), kPatience.count()));
  }
}

bool Storm::Strike(const Fault& fault, TimePoint now) {
  std::vector<NodeProcess> nodes = FindNodes(options_.programs);
  std::erase_if(nodes, [&](const NodeProcess& node) {
    return node.role != fault.role || std::ranges::any_of(paused_, [&](const Paused& paused) {
             return paused.process.pid() == node.pid;
           });
  });
  if (nodes.empty()) return false;
  const NodeProcess& node = nodes[rng_.Below(nodes.size())];
  std::optional<HeldProcess> held = HeldProcess::Hold(node, options_.programs);
  const bool kill = fault.kind == Fault::Kind::kKill;
  if (!held.has_value() || !held->Send(kill ? SIGKILL : SIGSTOP)) return false;
  Count(fault, node, now);
  if (!kill) paused_.push_back({*std::move(held), now + fault.pause});
  return true;
}

void Storm::Count(const Fault& fault, const NodeProcess& node, TimePoint now) {
  ByRole& counts = fault.kind == Fault::Kind::kKill ? result_.kills : result_.pauses;
  ++counts[Index(fault.role)];
  const std::string name = node.name.empty() ? std::string(ToString(node.role)) : node.name;
  if (fault.kind == Fault::Kind::kPause) {
    return Say(now, fmt::format("{}/{}  pause {} (pid {}) for {} ms", applied(), plan_.total(),
                                name, node.pid, fault.pause.count()));
  }
  Say(now, fmt::format("{}/{}  kill {} (pid {})", applied(), plan_.total(), name, node.pid));
  switch (fault.role) {
    case Role::kWorker:
      result_.worker_kills.push_back({Nanoseconds(now), {node.name, node.start.value()}});
      break;
    case Role::kServer:
      killed_servers_.push_back({node, now});
      break;
    case Role::kMaster:
      killed_masters_.push_back({status_.has_value() ? status_->master_incarnation : 0, now});
      break;
    case Role::kScaler:
      killed_scalers_.push_back({node, now});
      break;
  }
}

void Storm::Resume(TimePoint now) {
  std::erase_if(paused_, [now](const Paused& paused) {
    if (now < paused.until) return false;
    paused.process.Send(SIGCONT);
    return true;
  });
}

bool Storm::GotOverFaults(TimePoint now) {
  job_->SlowDown(0);
  if (now > deadline_) return true;
  if (now < asked_recovered_at_ + kRecoveredInterval) return false;
  asked_recovered_at_ = now;
  return options_.recovered();
}

void Storm::Connect() {
  if (link_ != nullptr) return;
  const absl::StatusOr<Endpoint> endpoint = job_->state().ReadEndpoint();
  if (!endpoint.ok()) return;
  link_ = std::make_unique<MasterLink>(
      MakeAdminClient(OperatorTarget(job_->state(), *endpoint), kAskDeadline, WhenAway::kWait),
      endpoint->run_id, kPollInterval, clock_);
}

void Storm::ReadSignals() {
  signalfd_siginfo info;
  while (::read(options_.signal_fd, &info, sizeof(info)) == sizeof(info)) {
    if (result_.interrupted) continue;
    result_.interrupted = true;
    GiveUp("stopped by the user");
  }
}

void Storm::ReadAnswers() {
  for (MasterLink::Answer& answer : link_->TakeAnswers()) {
    Measure(answer.status, answer.asked_at, clock_->Now());
    HoldBack(answer.status);
    status_ = std::move(answer.status);
  }
}

void Storm::Measure(const JobStatus& status, TimePoint asked_at, TimePoint now) {
  const JobCounters& counters = status.counters;
  result_.paths = Larger(result_.paths, {.replayed_shards = counters.replayed_shards,
                                         .reverified_runs = counters.reverified_runs,
                                         .parts_skipped = counters.parts_skipped,
                                         .reasserted_leases = counters.reasserted_leases});
  std::erase_if(killed_servers_, [&](const KilledNode& killed) {
    if (asked_at < killed.at || !ServesAgain(status, killed.node)) return false;
    result_.server_recoveries_ms.push_back(Milliseconds(killed.at, now));
    return true;
  });
  std::erase_if(killed_masters_, [&](const KilledMaster& killed) {
    if (status.master_incarnation <= killed.incarnation) return false;
    result_.master_recoveries_ms.push_back(Milliseconds(killed.at, now));
    return true;
  });
  std::erase_if(killed_scalers_, [&](const KilledNode& killed) {
    if (asked_at < killed.at || !ScalesAgain(status, killed.node)) return false;
    result_.scaler_recoveries_ms.push_back(Milliseconds(killed.at, now));
    return true;
  });
}

/// If a job is faster than its faults, it would end before them, so it is slowed down.
void Storm::HoldBack(const JobStatus& status) {
  if (phase_ != Phase::kFaults) return;
  const Totals totals = TotalsOf(status);
  if (totals.expected == 0) return;
  job_->SlowDown(
      DoublingsFor(static_cast<double>(totals.done) / static_cast<double>(totals.expected),
                   applied() / (plan_.total() + 1.0)));
}

void Storm::SayProgress(TimePoint now) {
  if (now < said_at_ + kProgressInterval || !status_.has_value()) return;
  said_at_ = now;
  const Totals totals = TotalsOf(*status_);
  Say(now, fmt::format("{} of {} records done, {} of {} faults applied", CountText(totals.done),
                       CountText(totals.expected), applied(), plan_.total()));
}

void Storm::Say(TimePoint now, const std::string& what) const {
  options_.say(fmt::format("{:6.1f} s  {}", Milliseconds(started_at_, now) / 1000, what));
}

void Storm::GiveUp(std::string problem) {
  if (phase_ == Phase::kEnding) return;
  phase_ = Phase::kEnding;
  result_.problem = std::move(problem);
  launcher_.Kill(kRun);
}

void Storm::HandleExit(const NodeExited& exited) {
  ended_ = true;
  if (phase_ == Phase::kEnding) return;
  if (exited.exit == ExitStatus{}) {
    const bool faults_over =
        phase_ == Phase::kFinishing || (phase_ == Phase::kPausesEnd && paused_.empty());
    if (!faults_over) result_.problem = "the job ended before its faults did";
    return;
  }
  result_.problem =
      fmt::format("`muster run` ended with {}: {}", ToString(exited.exit), exited.last_words);
}

}  // namespace muster::verify
