#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/env.h"
#include "tests/sim/group/group_model.h"
#include "tests/sim/group/member_tables.h"
#include "tests/sim/worker_process.h"
#include "worker_sdk/member_core/member_core.h"

namespace muster::sim {

/// A trainer's process of a synchronous group: the real MemberCore, code that replaces the threads
/// of the session and of the collectives, and a trainer. Members reach each other over the
/// simulated network; a part of a sum is sent until the other one has it.
class SimMember final : public WorkerProcess {
 public:
  SimMember(Env* env, ProcessRef process, uint32_t slot, uint64_t start,
            const TrainerFaults& faults);

  void Start() override { Hello(); }
  const ProcessRef& process() const override { return process_; }
  void Hang() override {}
  const SlotFile& slot_file() const override { return slot_file_; }
  bool told_to_stop() const override { return told_to_stop_; }

  uint32_t slot() const { return slot_; }
  uint64_t incarnation() const { return slot_file_.incarnation; }

 private:
  /// Of a sum, as its members tell each other.
  struct SumKey {
    LineageNumber lineage;
    AttemptNumber attempt;
    StepNumber step;
    friend auto operator<=>(const SumKey&, const SumKey&) = default;
  };
  struct PeerReply {
    enum class Code : uint8_t { kOk, kRefused, kHasNot } code = Code::kRefused;
    ModelState state = 0;
    StateLabel label;
    ModelSum sum;
  };
  using Answer = std::function<void(const std::optional<PeerReply>&)>;
  struct Copying {
    sdk::GroupTransfer transfer;
    size_t next = 0;  // stripe, or holder
    std::optional<ModelState> state;
    StateLabel label;
    bool differs = false;
    bool unreached = false;
  };

  TimePoint Now() const { return process_->Local(env_->scheduler.now()); }
  void After(nanoseconds delay, std::function<void()> action) {
    env_->scheduler.After(delay, process_, std::move(action));
  }
  nanoseconds Some(nanoseconds max) {
    return nanoseconds(rng_.Below(static_cast<uint64_t>(max.count()) + 1));
  }
  bool Misbehaves(uint64_t chance) { return env_->faulty && rng_.Below(1000) < chance; }
  GroupProcess name() const { return {name_, slot_file_.incarnation}; }

  // The control thread.
  void Hello();
  void Begin();
  void Exchange();
  void OnExchanged(uint64_t call, const absl::StatusOr<GroupExchangeReply>& reply);
  void CheckVote(const GroupExchangeRequest& request);
  // The trainer's thread.
  /// After every event: everything that can go on does so.
  void Pump();
  void Act();
  void NextTask();
  void NextMinibatch();
  void Compute(uint32_t minibatch, ModelState before);
  /// Goes on when partitions have acknowledged what it has pushed.
  void AwaitTables();
  void EndMinibatch();
  void EndLoop();
  void LeaveLoop();
  void Apply();
  void Finish();
  // Sums.
  void Contribute();
  void SendPart(const SumKey& key, const GroupMember& to);
  void TakePart(const SumKey& key, const GroupProcess& from, const ModelSum& part);
  void FinishSum();
  void Prune();
  // The state.
  /// What the core has ordered and was not begun yet.
  sdk::MemberEffects& Effects() {
    effects_.Add(core_->TakeEffects(Now()));
    return effects_;
  }
  void Transfer();
  void CopyNext();
  void FetchNext();
  void EndCopy();
  void TransferFailed();
  void Capture();
  void Digest();
  /// Tells the judge what the memory is, unless the trainer has applied a step otherwise.
  void Judge(const StateLabel& label, const std::string& how);
  void Store(const sdk::CaptureOrder& order);
  /// Asks another member, once.
  void Ask(const GroupMember& to, std::function<PeerReply(SimMember*)> serve, Answer done);

  Env* const env_;
  const ProcessRef process_;
  const uint32_t slot_;
  const uint64_t start_;
  const TrainerFaults faults_;
  Rng rng_;
  std::string name_;
  std::optional<sdk::MemberCore> core_;
  sdk::MemberEffects effects_;
  SlotFile slot_file_;
  MemberTables tables_;
  /// What the trainer's thread waits for.
  enum class Waits : uint8_t { kNothing, kPush, kAllPushes } waits_ = Waits::kNothing;
  uint32_t computed_ = 0;  // the newest minibatch
  bool told_to_stop_ = false;
  bool ending_ = false;
  bool pumping_ = false;

  uint64_t newest_call_ = 0;
  bool calling_ = false;

  ModelState memory_ = 0;
  bool odd_ = false;  // the memory is not what the others have
  sdk::TrainerTask task_;
  bool busy_ = false;  // the trainer's thread is inside task_
  std::deque<uint32_t> to_compute_;
  sdk::StepRunNumber run_ = 0;
  std::map<uint32_t, uint64_t> gradients_;  // of run_

  std::optional<SumKey> contributed_;
  ModelSum part_;
  std::map<SumKey, std::map<GroupProcess, ModelSum>> parts_;
  std::optional<std::pair<SumKey, ModelSum>> sum_;
  ModelSum fetched_;
  std::map<StateLabel, ModelSum> kept_;

  std::optional<Copying> copying_;
  bool capturing_ = false;
  struct Copy {
    StateLabel label;
    uint32_t stripe = 0;
    ModelState state = 0;
  };
  std::optional<Copy> copy_;
};

}  // namespace muster::sim
