#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "proto/messages/group_control.h"
#include "tests/sim/env.h"
#include "tests/sim/worker_link.h"
#include "worker_sdk/member_core/computed_share.h"

namespace muster::sim {

/// What a member does with the tables of its job: the real WorkerCore, which holds no leases here,
/// and what the session does in a step. Without servers it does nothing.
class MemberTables {
 public:
  MemberTables(Env* env, Rng* rng, WorkerLink::Owner owner);

  /// Registers the tables; `then` at once if there are none.
  void Open(const std::string& worker, uint64_t incarnation, std::function<void()> then);
  /// What other runs have pushed is not waited for any more.
  void Follow(sdk::StepRunNumber run);
  void Push(sdk::StepRunNumber run, const StepWork& work, uint32_t minibatch, TimePoint now);
  /// The next minibatch may begin: few pushes wait for an answer, or the run or the job is over.
  bool MayGoOn(sdk::StepRunNumber run) const;
  /// Everything that the run has pushed is in the tables, or the run or the job is over.
  bool Settled(sdk::StepRunNumber run) const;
  /// As in HeldSum. Absent: something that the run has pushed is not in the tables, or it is over.
  std::optional<RestoreEpoch> PushedUnder(sdk::StepRunNumber run) const;
  void Carry();

 private:
  static RunNumber NumberOf(sdk::StepRunNumber run) {
    return RunNumber(static_cast<uint32_t>(run));
  }

  Env* const env_;
  std::optional<WorkerLink> link_;
  sdk::WorkerCore* core_ = nullptr;  // of link_, when it is open
};

}  // namespace muster::sim
