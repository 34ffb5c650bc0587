#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "proto/messages/group_control.h"
#include "worker_sdk/member_core/computed_share.h"
#include "worker_sdk/member_core/member_tasks.h"

namespace muster::sdk {

/// The member's part of docs/protocol.md, section 12: which state this process has, which step it
/// works on, and which sum it may apply. Pure: events are its methods, and after each of them the
/// shell takes the effects. Not thread-safe.
///
/// One thread is the trainer's. It asks NextTask. It counts as being inside its last task until it
/// asks again, and nothing overwrites the state during that time. An answer of the master contains
/// everything, except for what the process has said that it knows. So the next answer makes up for
/// one that is lost.
class MemberCore {
 public:
  struct Options {
    std::string worker;
    uint64_t incarnation = 0;
    /// The calls of earlier groups of this process, because the master takes no older call.
    uint64_t calls_before = 0;
    GroupIntroduction introduction;
    /// The pause after a transfer that failed.
    std::chrono::milliseconds retry_pause{200};
    /// If no holder answers for this long, a sum counts as one that nobody has.
    std::chrono::milliseconds no_answer_limit{10'000};
    /// The pause after a stored state that cannot be read.
    std::chrono::milliseconds unreadable_pause{1'000};
  };
  explicit MemberCore(Options options)
      : options_(std::move(options)), sequence_(options_.calls_before) {}

  /// What the shell must do because of the events since the last call. Each order is given once.
  MemberEffects TakeEffects(TimePoint now);

  // ---- the exchange ----

  /// The whole state of the process, for the next call. The next call follows an answer at once, or
  /// comes when the process has been quiet for a while (CallTimes).
  GroupExchangeRequest Request();
  /// The last call, after which the others continue without this process. None if the master need
  /// not hear it.
  std::optional<GroupExchangeRequest> Farewell();
  /// The number of the newest call.
  uint64_t calls() const { return sequence_; }
  /// See MemberEffects::call.
  bool request_changed() const;
  /// True if the next call will probably be a vote. Then it may wait a moment if there is no other
  /// news.
  bool NextCallIsVote() const;
  /// Takes an answer. Old and repeated answers do nothing.
  void OnReply(const GroupExchangeReply& reply);
  /// After the current step, this process takes part in no step. Idempotent.
  void Leave() { leaving_ = true; }
  bool leaving() const { return leaving_; }

  // ---- the trainer's thread ----

  /// kWait means that the thread waits in the library, so its state may be overwritten.
  TrainerTask NextTask();
  /// The loop begins with a minibatch. If false, the loop must end, because its gradients are
  /// useless.
  bool StartMinibatch(StepRunNumber run, MinibatchIndex minibatch) {
    return !failed_.has_value() && run_.Start(run, minibatch);
  }
  /// All gradients of the minibatch are added. `took` is the time of its computation.
  void OnMinibatch(StepRunNumber run, MinibatchIndex minibatch, std::chrono::microseconds took);
  /// The loop is over. The metrics are those of all minibatches that were computed in this run.
  /// What they pushed is in the tables. `pushed_under` is explained in HeldSum, and counts since
  /// the last such call.
  void OnComputed(StepRunNumber run, ShardMetrics metrics, RestoreEpoch pushed_under = {});
  /// The step failed: because of the trainer, or because of a NaN in its gradients or in the sum.
  /// `fatal` means that no retry can help.
  void OnTrainerFailed(StepRunNumber run, std::string reason, bool fatal);
  /// The step of the last kApply or kReplay is now in the state.
  void OnApplied();
  /// The trainer did not finish the change, so the memory holds no state and must be copied again.
  void OnApplyFailed();

  // ---- sums ----

  std::optional<GroupRing> WantedRing() const;
  /// What must be summed now. Absent if nothing must.
  std::optional<WantedSum> WantedSums() const;
  /// Every bucket of the step is summed. `digest` is that of all sums, in order.
  void OnSum(AttemptNumber attempt, StepNumber step, uint32_t digest);
  void OnSumFailed(AttemptNumber attempt, SuspectedMember suspect);
  /// Other members may ask for applied sums of this lineage, but only for steps after this one. If
  /// absent, they ask for none.
  std::optional<StepNumber> SumsKeptAfter() const;

  // ---- the state ----

  /// True if its state is older than that of the step but will probably get there.
  bool WillApply(LineageNumber lineage, StepNumber step) const {
    return state_.has_value() && state_->lineage == lineage && state_->step < step;
  }
  /// True if it is a member and every step that has happened is in its state.
  bool HasAllSums() const { return IsMember() && HasNewestState(); }
  /// The state is copied. The holders have labelled every stripe with this label.
  void OnStateCopied(StateLabel label);
  /// A holder could not be reached, or sent something else. The transfer is repeated after a pause.
  void OnTransferFailed(TimePoint now);
  /// Pieces that only exist in storage cannot be read. The transfer is repeated, and the master is
  /// told.
  void OnStateUnreadable(UnreadableState what, TimePoint now);
  void OnSumFetched(StepNumber step);
  /// A holder will have the sum, but its trainer still applies it, however long that takes. So the
  /// transfer is soon repeated, because the next step waits for this newcomer.
  void OnSumLater(TimePoint now);
  /// No holder has the sum.
  void OnSumMissing(StepNumber step);

  /// `digest` is 0 unless the order wants it.
  void OnCaptured(StateStripe stripe, uint64_t digest = 0);
  void OnDigest(uint64_t digest);
  /// The held copy of this state was stored under this name.
  void OnStored(StateLabel label, std::string object);
  /// The copy cannot be stored now.
  void OnNotStored(std::string why) { unwritten_ = std::move(why); }

  // ---- what the process knows, for lines on stderr and for the shell ----

  const std::optional<StateLabel>& state() const { return state_; }
  StepRunNumber run() const { return run_.number(); }
  AttemptNumber attempt() const { return view_.attempt; }
  MemberPhase phase() const;
  bool computes() const { return phase() == MemberPhase::kComputing; }
  /// True if the job has succeeded and the registered memory has the state after its last step.
  bool HasFinalState() const;
  /// The newest answer.
  const GroupExchangeReply& view() const { return view_; }
  /// Why this process can never take part. Empty if it can.
  std::string_view refused() const {
    return view_.standing == GroupStanding::kRefused ? std::string_view(view_.waits) : "";
  }

 private:
  /// The task that the trainer's thread is inside.
  enum class Inside : uint8_t { kNothing, kComputing, kApplying };

  TrainerTask::Kind NextKind() const;
  std::optional<GroupTransfer> BeginTransfer(TimePoint now);
  std::optional<CaptureOrder> BeginCapture();
  std::optional<StateLabel> BeginDigest();
  bool WantsRing(const std::optional<GroupRing>& ring) const;
  bool WantsTransfer() const;
  bool CaptureDue() const;
  bool DigestDue() const;
  bool IsMember() const { return view_.standing == GroupStanding::kMember; }
  bool IsNews(const GroupExchangeReply& reply) const;
  bool CommitsHeldSum() const;
  bool HasNewestState() const;
  bool SameStateInNewLineage(const StateLabel& label) const;
  bool Over() const;
  bool MustRestart() const;
  bool UsesMemory() const;
  bool MayCompute() const;
  bool Captured(const CaptureOrder& order) const;
  bool Copies() const { return capturing_ || digesting_.has_value(); }
  bool HasDigest() const { return digest_.has_value() && state_ == digest_->label; }
  bool NeedsCopy() const;
  bool NeedsSum() const;
  bool Evaluates() const;
  bool Replays() const { return view_.work.has_value() && view_.work->replay; }
  bool HasReplayed() const;

  void TakeCommit();
  void EndAttempt();
  /// Does everything that follows from the newest answer and the state.
  void Settle();
  void DropRefusedState();
  void AdoptLineage();
  void AdoptInitialState();
  void AssignWork();
  void PlanCapture();
  void Vote();
  void LoseState();
  void DropSum();
  GroupExchangeRequest Content() const;

  Options options_;
  /// The ring that the shell was told last.
  std::optional<GroupRing> told_ring_;
  std::optional<WantedSum> told_sums_;
  bool told_to_stop_ = false;  // to stop the transfer in progress
  /// The newest answer.
  GroupExchangeReply view_;
  uint64_t sequence_;
  std::optional<GroupExchangeRequest> sent_;
  bool leaving_ = false;

  /// Absent if the registered memory holds no state of a lineage.
  std::optional<StateLabel> state_;
  /// True if the registered memory is still as the trainer has made it.
  bool untouched_ = true;
  Inside inside_ = Inside::kNothing;
  /// True if the trainer's thread is in the library and has nothing to do. It is at first, because
  /// it made this core there.
  bool trainer_waits_ = true;

  ComputedShare run_;
  uint64_t minibatch_us_ = 0;
  /// The sum of the current attempt, or the committed sum that must be applied.
  std::optional<HeldSum> sum_;
  bool voted_ = false;
  bool committed_ = false;
  uint64_t committed_records_ = 0;
  bool evaluation_ = false;  // sum_ stands for an evaluation
  /// The fetched sum of the next step must be applied.
  bool fetched_ = false;
  std::optional<FailedStep> failed_;
  std::vector<SuspectedMember> suspected_;

  /// The transfer in progress.
  std::optional<GroupTransfer> transfer_;
  std::optional<TimePoint> retry_at_;
  /// Since when no holder of the sum has answered.
  std::optional<TimePoint> no_answer_since_;
  std::optional<UnreadableState> unreadable_;  // found by the last copy
  /// A source is useless if nobody has the sums that follow its state.
  std::optional<StateLabel> useless_source_;

  /// The newest capture that the master asked for, and the one that was begun last.
  std::optional<CaptureOrder> capture_, taken_;
  bool capturing_ = false;
  std::optional<HeldCapture> held_;
  std::string unwritten_;
  /// The newest digest of the state, and the state whose digest is being made.
  std::optional<StateDigest> digest_;
  std::optional<StateLabel> digesting_;
};

}  // namespace muster::sdk
