#include "tests/sim/group/member_tables.h"

#include <utility>

namespace muster::sim {

MemberTables::MemberTables(Env* env, Rng* rng, WorkerLink::Owner owner) : env_(env) {
  if (env->knobs.servers > 0) link_.emplace(env, rng, std::move(owner));
}

void MemberTables::Open(const std::string& worker, uint64_t incarnation,
                        std::function<void()> then) {
  if (!link_.has_value()) return then();
  link_->Open({worker, incarnation, 0, env_->knobs.leases.heartbeat_interval});
  core_ = link_->core();
  link_->RegisterTables(0, env_->workload.tables().size(), std::move(then));
  Carry();
}

void MemberTables::Follow(sdk::StepRunNumber run) {
  if (core_ != nullptr) core_->BeginStepRun(NumberOf(run));
}

void MemberTables::Push(sdk::StepRunNumber run, const StepWork& work, uint32_t minibatch,
                        TimePoint now) {
  if (core_ == nullptr || IsGroupEvaluate(work.shard)) return;
  const TrainBatch& batch = env_->workload.BatchOf(work.shard, MinibatchIndex(minibatch));
  if (work.replay) env_->probes.Hit(Probe::kGroupPushedAgain);
  core_->CommitStepMinibatch({work.shard, MinibatchIndex(minibatch), work.token, NumberOf(run),
                              work.work.first_step + minibatch, work.restore_epoch},
                             link_->PushOf(batch), now);
}

bool MemberTables::MayGoOn(sdk::StepRunNumber run) const {
  return core_ == nullptr || core_->ended() || !core_->step_pushes().Is(NumberOf(run)) ||
         core_->outstanding_pushes() <= env_->knobs.unacknowledged_max;
}

bool MemberTables::Settled(sdk::StepRunNumber run) const {
  return core_ == nullptr || core_->ended() || !core_->step_pushes().Is(NumberOf(run)) ||
         core_->step_pushes().all_answered();
}

std::optional<RestoreEpoch> MemberTables::PushedUnder(sdk::StepRunNumber run) const {
  if (core_ == nullptr) return RestoreEpoch();
  const sdk::StepPushes& pushes = core_->step_pushes();
  if (!pushes.Is(NumberOf(run)) || !pushes.all_answered()) return std::nullopt;
  return pushes.pushed_under();
}

void MemberTables::Carry() {
  if (core_ != nullptr) link_->Carry();
}

}  // namespace muster::sim
