#include "tests/sim/sim_worker.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "tests/sim/sim_master.h"

namespace muster::sim {
namespace {

constexpr milliseconds kCallTimeout{500};
constexpr milliseconds kRetryEvery{100};

bool Permanent(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

SimWorker::SimWorker(Env* env, ProcessRef process, uint32_t slot, uint64_t start,
                     const TrainerFaults& faults)
    : env_(env),
      process_(std::move(process)),
      slot_(slot),
      start_(start),
      faults_(faults),
      rng_(env->Stream(3, process_->id)),
      link_(env, &rng_,
            {.process = process_,
             .slot = slot,
             .changed = [this] { Pump(); },
             .refused = [this] { Fail(); },
             .told = [this](const WorkerExchangeReply& reply) { Told(reply); }}),
      name_("worker-" + std::to_string(slot)) {
  slot_file_.incarnation = HashWords(env->seed, process_->id) | 1;
}

void SimWorker::Start() {
  Hello();
}

void SimWorker::Hello() {
  const WorkerKey key{name_, slot_file_.incarnation};
  Call<bool>(env_, {process_, WorkerEnd(slot_), kCallTimeout,
                    [key, start = start_](MasterCore& core, StepTime at) -> absl::StatusOr<bool> {
                      MUSTER_RETURN_IF_ERROR(core.HelloWorker(key, StartNumber(start), at));
                      return true;
                    },
                    [this](const absl::StatusOr<bool>& reply) {
                      if (Permanent(reply.status())) return env_->Exit(process_, {.exit_code = 1});
                      if (!reply.ok()) return After(kRetryEvery, [this] { Hello(); });
                      Greeted();
                      link_.Open({name_, slot_file_.incarnation, env_->knobs.shards_ahead,
                                  env_->knobs.leases.heartbeat_interval});
                      core_ = link_.core();
                      const size_t early = env_->workload.tables().size() - 1;
                      link_.RegisterTables(0, early, [this] { BeginLoops(); });
                      Pump();
                    }});
}

void SimWorker::Greeted() {
  std::vector<ProcessRef>& others = env_->greeted[slot_];
  for (const ProcessRef& other : others) {
    if (other->alive) env_->probes.Hit(Probe::kWorkerZombie);
  }
  others.push_back(process_);
}

void SimWorker::BeginLoops() {
  loops_.resize(env_->knobs.loops);
  Pump();
}

void SimWorker::Told(const WorkerExchangeReply& reply) {
  told_to_stop_ |= reply.directive != JobDirective::kWork && core_->draining();
}

void SimWorker::Fail() {
  if (failed_) return;
  failed_ = true;
  core_->Abandon();
  After(milliseconds(500), [this] { env_->Exit(process_, {.exit_code = 1}); });
}

void SimWorker::Pump() {
  if (pumping_ || !process_->alive || core_ == nullptr) return;
  pumping_ = true;
  bool again = true;
  while (again && process_->alive) {
    again = false;
    for (Loop& loop : loops_) again |= Advance(&loop);
  }
  pumping_ = false;
  if (!process_->alive) return;
  const auto idle = std::ranges::count(loops_, State::kIdle, &Loop::state);
  core_->SetWaiting(static_cast<uint32_t>(idle));
  Finish();
  link_.Carry();
}

void SimWorker::Finish() {
  const bool over = !loops_.empty() && std::ranges::all_of(loops_, [](const Loop& loop) {
    return loop.state == State::kEnded;
  });
  if (!over || failed_) return;
  if (!std::exchange(finishing_, true)) core_->Leave();
  if (core_->ended() || core_->idle()) {
    env_->Exit(process_, {.exit_code = told_to_stop_ ? 0u : 1u});
  }
}

}  // namespace muster::sim
