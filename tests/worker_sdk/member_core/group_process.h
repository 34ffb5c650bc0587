#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/worker_sdk/member_core/small_group_master.h"
#include "worker_sdk/member_core/member_core.h"

namespace muster::sdk {

/// A process of a group as its shell would be: the trainer's thread, the registered memory, sums
/// and copies of it, each of them a few letters. The random test moves it by small steps.
class GroupProcess {
 public:
  /// How often something was reached.
  struct Probes {
    int applied = 0, replayed = 0, copied = 0, kept_runs = 0, failed = 0, suspected = 0,
        missing = 0, restarts = 0, relabelled = 0, captured = 0;
  };
  struct Copy {
    StateLabel label;
    ModelState state;
  };
  struct Kept {
    StateLabel after;  // of the state that the sum leads to
    StepContent content;
  };

  GroupProcess(std::string worker, uint64_t incarnation, uint32_t initial_digest)
      : core_({.worker = worker,
               .incarnation = incarnation,
               .introduction = {.tensors = {}, .initial_digest = initial_digest, .addresses = {}}}),
        name_(std::move(worker), incarnation) {}

  MemberCore& core() { return core_; }
  const MemberCore& core() const { return core_; }
  const ProcessName& name() const { return name_; }
  const std::optional<Copy>& copy() const { return copy_; }
  const std::vector<Kept>& kept() const { return kept_; }
  /// The trainer has ended itself, and a new process takes its place.
  bool wants_restart() const { return restart_; }
  bool ended() const { return ended_; }
  const ModelState* StableState() const { return torn_ ? nullptr : &memory_; }

  /// A small step of the trainer's thread.
  void TrainerStep(bool fails, Probes* probes);
  /// Adds what is ready with the others; `fails`: the connection breaks.
  void SumStep(Fabric* fabric, bool fails, Probes* probes);
  /// Copies from others; `all`: the living processes.
  void TransferStep(const std::vector<GroupProcess*>& all, const ModelState& stored, bool fails,
                    TimePoint now, Rng* rng, Probes* probes);
  void CaptureStep(TimePoint now, Probes* probes);

 private:
  void ComputeStep(bool fails, Probes* probes);
  void ApplyStep(Probes* probes);
  void FinishCopy(const std::vector<GroupProcess*>& all, const ModelState& stored, TimePoint now,
                  Probes* probes);
  void FinishFetch(const std::vector<GroupProcess*>& all, TimePoint now, Rng* rng, Probes* probes);
  void PruneKept();
  MemberEffects& Effects(TimePoint now) {
    effects_.Add(core_.TakeEffects(now));
    return effects_;
  }

  MemberCore core_;
  MemberEffects effects_;
  ProcessName name_;
  ModelState memory_;
  bool torn_ = false;
  bool restart_ = false, ended_ = false;

  TrainerTask task_;
  std::vector<uint32_t> to_compute_;
  std::optional<uint32_t> computing_;
  bool in_loop_ = false;
  /// The gradients of the newest run.
  StepRunNumber run_ = 0;
  std::map<uint32_t, std::string> gradients_;
  std::optional<AttemptNumber> contributed_;
  StepNumber contributed_step_;
  StepContent sum_, fetched_;

  std::optional<GroupTransfer> transfer_;
  std::optional<std::pair<CaptureOrder, ModelState>> capturing_;
  std::optional<Copy> copy_;
  bool to_store_ = false;
  std::vector<Kept> kept_;
};

}  // namespace muster::sdk
