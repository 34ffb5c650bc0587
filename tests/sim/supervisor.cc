#include "tests/sim/supervisor.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "tests/sim/group/sim_member.h"
#include "tests/sim/planted/planted_bug.h"

namespace muster::sim {
namespace {

constexpr milliseconds kPoll{200};
/// Of one node, in all runs.
constexpr uint64_t kProcessesMax = 10'000;

NodeRole RoleOf(Role role) {
  return role == Role::kMaster   ? NodeRole::kMaster
         : role == Role::kServer ? NodeRole::kServer
                                 : NodeRole::kWorker;
}

}  // namespace

Supervisor::Supervisor(Env* env, const TrainerFaults& trainers) : env_(env), trainers_(trainers) {
  slots_.push_back({Role::kMaster, 0});
  for (uint32_t i = 0; i < env->knobs.servers; ++i) slots_.push_back({Role::kServer, i});
  for (uint32_t i = 0; i < env->knobs.workers; ++i) slots_.push_back({Role::kWorker, i});
  env->exited = [this](const ProcessRef& process, const ProcessEnd& end) { Exited(process, end); };
}

uint32_t Supervisor::IndexBound(Role role) const {
  return static_cast<uint32_t>(std::ranges::count(slots_, role, &Slot::role));
}

Supervisor::Slot& Supervisor::SlotOf(Role role, uint32_t index) {
  const auto slot = std::ranges::find_if(
      slots_, [&](const Slot& s) { return s.role == role && s.index == index; });
  MUSTER_CHECK(slot != slots_.end());
  return *slot;
}

std::string Supervisor::NameOf(const Slot& slot) const {
  if (slot.role == Role::kMaster) return "master";
  return fmt::format("{}-{}", ToString(RoleOf(slot.role)), slot.index);
}

void Supervisor::StartRun() {
  ++runs_;
  restarting_ = false;
  telling_ = false;
  reports_.clear();
  self_ = std::make_shared<Process>(fmt::format("run#{}", runs_), 0, nanoseconds(0), 0);
  env_->Say(*self_, "begins");
  for (Slot& slot : slots_) {
    slot.starts = 0;
    slot.over = false;
    Start(&slot);
  }
  env_->scheduler.After(kPoll, self_, [this] { Poll(); });
}

void Supervisor::Start(Slot* slot) {
  // Named by its node, so that what is drawn for it does not depend on what happens to others.
  const auto number = static_cast<uint64_t>(slot - slots_.data());
  const uint64_t id = (number + 1) * kProcessesMax + ++slot->processes;
  MUSTER_CHECK(slot->processes < kProcessesMax);
  ++slot->starts;
  slot->rng = env_->Stream(4, id);
  const nanoseconds offset{slot->rng.Below(1'000'000'000'000)};
  // Up to 2 % fast or slow; worse clocks than any machine's.
  const int64_t drift = static_cast<int64_t>(slot->rng.Below(40'000)) - 20'000;
  auto process = std::make_shared<Process>(fmt::format("{}#{}", NameOf(*slot), slot->processes), id,
                                           offset, drift);
  slot->process = process;
  env_->Say(*process, "starts");
  NodeReport report;
  report.node = NameOf(*slot);
  report.role = RoleOf(slot->role);
  report.pid = id;
  report.start = StartNumber(slot->starts);
  reports_.push_back(std::move(report));
  TellNext();
  if (slot->role == Role::kMaster) return StartMaster(process);
  if (slot->role == Role::kServer) {
    env_->servers.push_back(std::make_unique<SimServer>(env_, process, slot->index, slot->starts));
    return env_->servers.back()->Start();
  }
  if (env_->knobs.group.has_value()) {
    auto member = std::make_unique<SimMember>(env_, process, slot->index, slot->starts, trainers_);
    env_->members[{NameOf(*slot), member->incarnation()}] = member.get();
    workers_.push_back(std::move(member));
  } else {
    workers_.push_back(
        std::make_unique<SimWorker>(env_, process, slot->index, slot->starts, trainers_));
  }
  slot->worker = workers_.back().get();
  slot->worker->Start();
}

void Supervisor::StartMaster(ProcessRef process) {
  CoreOptions options;
  options.datasets = env_->workload.plan();
  options.partitions = env_->knobs.partitions;
  options.servers = env_->knobs.servers;
  options.run_id = fmt::format("run-{}", runs_);
  options.snapshot_directory = "snapshots";
  options.retry_failed = retry_failed_;
  options.snapshot_interval = env_->knobs.snapshot_interval;
  options.snapshot_timeout = env_->knobs.snapshot_timeout;
  options.leases = env_->knobs.leases;
  options.server_times = env_->knobs.server_times;
  options.drain_timeout = milliseconds(2'000);
  options.rejected_records_max = 1'000;
  if (env_->knobs.keeps_epochs) {
    options.epoch_ends.keep_best = DecidingMetric{kEvaluateDataset, "loss", Better::kLower};
    options.epoch_ends.keep_every = 2;
    options.epoch_ends.keep_last = 1;
  }
  options.limits.commits_at_once = env_->knobs.commits_at_once;
  options.limits.epochs_known = env_->knobs.epochs_known;
  if (env_->knobs.group.has_value()) {
    options.group = env_->knobs.group;
  }
  if (env_->knobs.servers == 0) {
    // A place for partitions that no job without servers has.
    options.partitions = 1;
    options.restore_timeout = std::chrono::hours(1);
  }
  options.planted_bugs.no_reverify = IsPlanted("no-reverify");
  masters_.push_back(std::make_unique<SimMaster>(env_, std::move(process), std::move(options),
                                                 fmt::format("machine-{}", machine_)));
  env_->master = masters_.back().get();
  env_->heard.clear();
  env_->master->Start();
}

void Supervisor::Exited(const ProcessRef& process, const ProcessEnd& end) {
  if (env_->master != nullptr && env_->master->process() == process) env_->master = nullptr;
  for (Slot& slot : slots_) {
    if (slot.process == process) Ended(&slot, end);
  }
}

void Supervisor::Ended(Slot* slot, const ProcessEnd& end) {
  if (end.signal != 0) ++crashes_;
  NodeReport report;
  report.node = NameOf(*slot);
  report.role = RoleOf(slot->role);
  report.pid = slot->process->id;
  report.what = NodeReport::What::kExited;
  report.signal = end.signal;
  report.exit_code = end.exit_code;
  report.start = StartNumber(slot->starts);
  if (slot->role == Role::kWorker) {
    const SimWorker::SlotFile& file = slot->worker->slot_file();
    report.incarnation = file.incarnation;
    report.computing_token = file.token;
    report.minibatches_started = file.minibatches;
    if (file.token != LeaseToken() && end.signal != SIGKILL) {
      env_->oracle.OnTrainerFailed(file.shard, file.token);
    }
    slot->over = slot->worker->told_to_stop() && end.signal == 0 && end.exit_code == 0 &&
                 slot->process != slot->drained;
  }
  reports_.push_back(std::move(report));
  TellNext();
  if (!restarting_ && !slot->over) Restart(slot);
}

void Supervisor::Restart(Slot* slot) {
  const nanoseconds delay = milliseconds(20 + slot->rng.Below(400));
  env_->scheduler.After(delay, self_, [this, slot, ended = slot->process] {
    if (slot->process == ended) Start(slot);
  });
}

void Supervisor::TellNext() {
  if (telling_ || reports_.empty() || self_ == nullptr) return;
  telling_ = true;
  const NodeReport report = reports_.front();
  Call<bool>(env_, {self_, kSupervisorEnd, milliseconds(500),
                    [report](MasterCore& core, StepTime at) -> absl::StatusOr<bool> {
                      core.ReportNode(report, at);
                      return true;
                    },
                    [this](const absl::StatusOr<bool>& told) {
                      telling_ = false;
                      if (told.ok() && !reports_.empty()) reports_.pop_front();
                      if (told.ok()) return TellNext();
                      env_->scheduler.After(milliseconds(100), self_, [this] { TellNext(); });
                    }});
}

bool Supervisor::Terminal() const {
  const auto& meta = env_->journal.state().meta;
  return meta.has_value() && IsTerminal(meta->state) &&
         meta->run_id == fmt::format("run-{}", runs_);
}

void Supervisor::Poll() {
  if (Terminal() && env_->journal.state().meta->state != JobState::kSucceeded) {
    const JobState state = env_->journal.state().meta->state;
    if (state == JobState::kDrained) env_->probes.Hit(Probe::kDrain);
    if (state == JobState::kFailed) env_->probes.Hit(Probe::kRetriedShard);
    // All nodes learn of it, and then the user runs the job again.
    env_->scheduler.After(milliseconds(500), self_, [this] { RestartRun(Power::kStays); });
    return;
  }
  KillLost();
  env_->scheduler.After(kPoll, self_, [this] { Poll(); });
}

void Supervisor::KillLost() {
  if (env_->master == nullptr || !env_->master->serving()) return;
  if (env_->master->process()->paused_until > env_->scheduler.now()) {
    // A master that does not answer is killed in the end.
    if (SlotOf(Role::kMaster, 0).rng.Below(8) == 0) Kill(Role::kMaster, 0);
    return;
  }
  const auto& nodes = env_->master->core().nodes().nodes();
  for (Slot& slot : slots_) {
    const auto node = nodes.find(NameOf(slot));
    if (node == nodes.end() || node->second.record.state != NodeState::kLost) continue;
    if (node->second.record.pid != slot.process->id) continue;
    if (env_->scheduler.now() < slot.spared_until) continue;
    if (slot.rng.Below(env_->knobs.patience) != 0) continue;
    Kill(slot.role, slot.index);
  }
}

bool Supervisor::Kill(Role role, uint32_t index) {
  Slot& slot = SlotOf(role, index);
  if (restarting_ || slot.process == nullptr || !slot.process->alive) return false;
  const ProcessRef process = slot.process;
  if (role == Role::kMaster) {
    const SimJournal::Found found = env_->journal.WriterDied(process);
    if (found != SimJournal::Found::kNothing) env_->probes.Hit(Probe::kMasterDiesUnsynced);
    if (found == SimJournal::Found::kFound) env_->probes.Hit(Probe::kUnsyncedFound);
  }
  env_->Exit(process, {.signal = SIGKILL});
  return true;
}

bool Supervisor::Pause(Role role, uint32_t index, nanoseconds duration) {
  Slot& slot = SlotOf(role, index);
  if (slot.process == nullptr || !slot.process->alive) return false;
  slot.process->paused_until = env_->scheduler.now() + duration;
  if (role == Role::kMaster) {  // it does this after it continues
    env_->scheduler.After({}, slot.process, [this] { env_->probes.Hit(Probe::kMasterPause); });
  }
  env_->Say(*slot.process, "stands still for {} ms", duration / milliseconds(1));
  return true;
}

void Supervisor::ResumeAt(TimePoint at, const ProcessRef& process) {
  process->paused_until = std::min(process->paused_until, at);
}

void Supervisor::ResumeWorker(uint32_t index, nanoseconds within) {
  const ProcessRef& process = SlotOf(Role::kWorker, index).process;
  if (process != nullptr) ResumeAt(env_->scheduler.now() + within, process);
}

uint64_t Supervisor::IncarnationOf(uint32_t worker) {
  const Slot& slot = SlotOf(Role::kWorker, worker);
  return slot.worker == nullptr ? 0 : slot.worker->slot_file().incarnation;
}

void Supervisor::Spare(uint32_t worker, nanoseconds duration) {
  SlotOf(Role::kWorker, worker).spared_until = env_->scheduler.now() + duration;
}

void Supervisor::Resume(nanoseconds within) {
  const auto resume = [&](const ProcessRef& process) {
    ResumeAt(env_->scheduler.now() + within, process);
  };
  for (const auto& server : env_->servers) resume(server->process());
  for (const auto& worker : workers_) resume(worker->process());
  for (const auto& master : masters_) resume(master->process());
}

bool Supervisor::Replace(Role role, uint32_t index) {
  Slot& slot = SlotOf(role, index);
  if (restarting_ || slot.process == nullptr || !slot.process->alive) return false;
  env_->Say(*slot.process, "is taken for dead");
  Start(&slot);
  return true;
}

bool Supervisor::SplitMaster(const MasterSplit& split) {
  Slot& slot = SlotOf(Role::kMaster, 0);
  if (restarting_ || env_->master == nullptr || !slot.process->alive) return false;
  if (split.restarted) {
    Kill(Role::kMaster, 0);
    Start(&slot);
  }
  SimMaster* const old = env_->master;
  env_->Say(*slot.process, "is lost, but lives on");
  env_->lost_masters.push_back({old, split.reached_by, env_->scheduler.now() + split.duration});
  if (split.pause.count() > 0) Pause(Role::kMaster, 0, split.pause);
  ++machine_;
  Start(&slot);
  return true;
}

void Supervisor::LosePartition(uint32_t server) {
  const ProcessRef& process = SlotOf(Role::kServer, server).process;
  for (const auto& each : env_->servers) {
    if (process != nullptr && each->process() == process) each->LosePartition();
  }
}

void Supervisor::HangTrainer(uint32_t index) {
  Slot& slot = SlotOf(Role::kWorker, index);
  if (slot.process != nullptr && slot.process->alive) slot.worker->Hang();
}

void Supervisor::Drain() {
  Call<bool>(env_, {self_, kSupervisorEnd, milliseconds(500),
                    [](MasterCore& core, StepTime at) -> absl::StatusOr<bool> {
                      core.Drain(at);
                      return true;
                    },
                    [](const absl::StatusOr<bool>&) {}});
}

void Supervisor::DrainNode(Role role, uint32_t index) {
  Slot& slot = SlotOf(role, index);
  if (restarting_ || slot.process == nullptr || !slot.process->alive) return;
  slot.drained = slot.process;
  AskDrain(&slot, slot.process);
}

void Supervisor::AskDrain(Slot* slot, const ProcessRef& process) {
  Call<NodeDrain>(
      env_, {self_, kSupervisorEnd, milliseconds(500),
             [name = NameOf(*slot)](MasterCore& core, StepTime at) {
               return core.DrainNode(name, milliseconds(0), at);
             },
             [this, slot, process](const absl::StatusOr<NodeDrain>& drain) {
               if (slot->process != process || !process->alive) return;
               if (!drain.ok() || drain->state != DrainState::kDrained) {
                 if (absl::IsFailedPrecondition(drain.status()) && Terminal()) return;
                 env_->scheduler.After(milliseconds(100), self_,
                                       [this, slot, process] { AskDrain(slot, process); });
                 return;
               }
               if (slot->role == Role::kWorker) {
                 env_->probes.Hit(Probe::kDrainedWorker);
                 return;  // it ends by itself
               }
               env_->probes.Hit(drain->left == 0 ? Probe::kDrainedServer : Probe::kDrainTimeout);
               env_->Say(*process, "is drained and ends");
               env_->Exit(process, {.exit_code = 0});
             }});
}

void Supervisor::RestartRun(Power power) {
  if (restarting_) return;
  restarting_ = true;
  if (power == Power::kStays) env_->probes.Hit(Probe::kRunRestart);
  env_->Say(*self_, "everything is killed{}", power == Power::kLost ? ", the power is cut" : "");
  const SimJournal::Found found = env_->journal.WriterDied(nullptr);
  self_->alive = false;
  crashes_ += slots_.size();
  const auto kill = [&](const ProcessRef& process) { process->alive = false; };
  for (const auto& server : env_->servers) kill(server->process());
  for (const auto& worker : workers_) kill(worker->process());
  for (const auto& master : masters_) kill(master->process());
  env_->master = nullptr;
  env_->lost_masters.clear();
  if (power == Power::kLost) {
    const bool took = env_->disk.PowerLoss() > 0 || found == SimJournal::Found::kLost;
    if (took) env_->probes.Hit(Probe::kPowerLoss);
  }
  const auto& meta = env_->journal.state().meta;
  retry_failed_ = meta.has_value() && meta->state == JobState::kFailed;
  env_->scheduler.After(milliseconds(100), nullptr, [this] { StartRun(); });
}

}  // namespace muster::sim
