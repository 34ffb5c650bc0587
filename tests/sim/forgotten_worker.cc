#include "tests/sim/forgotten_worker.h"

#include <algorithm>
#include <optional>

#include "tests/sim/sim_master.h"

namespace muster::sim {
namespace {

constexpr milliseconds kLook{40};

}  // namespace

void ForgottenWorker::Begin(uint32_t worker, nanoseconds longest) {
  if (env_->master == nullptr || !env_->master->serving()) return;
  const auto& leases = env_->master->core().leases().leases();
  if (leases.empty() || !supervisor_->Pause(Role::kWorker, worker, longest)) return;
  process_ = supervisor_->ProcessOf(Role::kWorker, worker);
  for (const auto& [token, lease] : leases) {
    const bool its = lease.worker.incarnation == supervisor_->IncarnationOf(worker);
    if (its && !lease.evaluate) held_.insert(token);
  }
  supervisor_->Spare(worker, longest);
  worker_ = worker;
  until_ = env_->scheduler.now() + longest;
  token_ = leases.rbegin()->first;
  LookAgain();
}

void ForgottenWorker::LookAgain() {
  env_->scheduler.After(kLook, nullptr, [this] { Look(); });
}

void ForgottenWorker::Look() {
  if (!env_->faulty || env_->scheduler.now() >= until_) return;
  if (!StepIsOver()) return LookAgain();
  if (step_ == Step::kSecondSnapshots) {
    if (StillStands() && !held_.empty()) {
      env_->probes.Hit(Probe::kForgottenWorker);
      env_->forgotten.insert(held_.begin(), held_.end());
    }
    return env_->scheduler.After(milliseconds(rng_.Below(300)), nullptr, [this] { Strike(); });
  }
  step_ = step_ == Step::kForgetting ? Step::kFirstSnapshots : Step::kSecondSnapshots;
  NoteSnapshots();
  LookAgain();
}

bool ForgottenWorker::StepIsOver() const {
  if (env_->master == nullptr || !env_->master->serving()) return false;
  if (step_ == Step::kForgetting) return Forgotten();
  // A partition that has not changed is not written again, so not every partition will be.
  return std::ranges::any_of(accepted_, [&](const auto& one) {
    return env_->master->core().partitions().manifest(one.first).number > one.second;
  });
}

bool ForgottenWorker::StillStands() const {
  return process_ != nullptr && process_->alive && process_->paused_until > env_->scheduler.now() &&
         supervisor_->ProcessOf(Role::kWorker, worker_) == process_;
}

bool ForgottenWorker::Forgotten() const {
  const std::optional<LeaseToken> oldest = env_->master->core().leases().OldestTrain();
  if (oldest.has_value() && *oldest <= token_) return false;
  for (uint32_t p = 0; p < env_->knobs.partitions; ++p) {
    const ps::Partition* partition = env_->master->Current(PartitionId(p));
    if (partition == nullptr || partition->floor() <= token_) return false;
  }
  return true;
}

void ForgottenWorker::NoteSnapshots() {
  for (uint32_t p = 0; p < env_->knobs.partitions; ++p) {
    const Manifest& manifest = env_->master->core().partitions().manifest(PartitionId(p));
    accepted_[PartitionId(p)] = manifest.number;
  }
}

void ForgottenWorker::Strike() {
  if (!env_->faulty) return;
  for (uint32_t s = 0; s < env_->knobs.servers; ++s) supervisor_->Kill(Role::kServer, s);
  supervisor_->ResumeWorker(worker_, milliseconds(rng_.Below(400)));
}

}  // namespace muster::sim
