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

/// The member's half of docs/protocol.md, section 12: which state this process has, which step it
/// works on, which sum it may apply. Pure: events are its methods, and after each of them the shell
/// takes the effects. Not thread-safe.
///
/// One thread is the trainer's; it asks NextTask. It counts as inside the task that it got last
/// until it asks again, and nothing overwrites the state while it is. The answers of the master say
/// everything but what the process has said it knows, so one that is lost is made up for by the
/// next.
class MemberCore {
 public:
  struct Options {
    std::string worker;
    uint64_t incarnation = 0;
    /// Of groups of this process before this one: the master takes no older call.
    uint64_t calls_before = 0;
    GroupIntroduction introduction;
    /// After a transfer that failed.
    std::chrono::milliseconds retry_pause{200};
    /// After so long without an answer, a sum counts as one that nobody has.
    std::chrono::milliseconds no_answer_limit{10'000};
    /// After a stored state that cannot be read.
    std::chrono::milliseconds unreadable_pause{1'000};
  };
  explicit MemberCore(Options options)
      : options_(std::move(options)), sequence_(options_.calls_before) {}

  /// What follows from the events since the last call. Each order is given once.
  MemberEffects TakeEffects(TimePoint now);

  // ---- the exchange ----

  /// The whole state of the process, for the next call. The next one follows an answer at once, or
  /// when the process has been quiet for a while (CallTimes).
  GroupExchangeRequest Request();
  /// The last call: the others go on without this process. None: the master need not hear it.
  std::optional<GroupExchangeRequest> Farewell();
  /// The number of the newest call.
  uint64_t calls() const { return sequence_; }
  /// See MemberEffects::call.
  bool request_changed() const;
  /// The next call will probably be a vote, so it may wait a moment if nothing else is to be said.
  bool NextCallIsVote() const;
  /// Old answers, and repeated ones, do nothing.
  void OnReply(const GroupExchangeReply& reply);
  /// It takes part in no step after the current one. Idempotent.
  void Leave() { leaving_ = true; }
  bool leaving() const { return leaving_; }

  // ---- the trainer's thread ----

  /// kWait: the thread waits in the library, so its state may be overwritten.
  TrainerTask NextTask();
  /// The loop begins with a minibatch. False: leave the loop, because its gradients are of no use.
  bool StartMinibatch(StepRunNumber run, MinibatchIndex minibatch) {
    return !failed_.has_value() && run_.Start(run, minibatch);
  }
  /// Every gradient of the minibatch is added; `took`: its computation.
  void OnMinibatch(StepRunNumber run, MinibatchIndex minibatch, std::chrono::microseconds took);
  /// The loop is over; the metrics are of all minibatches that were computed in this run. What they
  /// pushed is in the tables; `pushed_under`: as in HeldSum, since the last such call.
  void OnComputed(StepRunNumber run, ShardMetrics metrics, RestoreEpoch pushed_under = {});
  /// The trainer, or a NaN in its gradients or in the sum, failed the step. `fatal`: no retry can
  /// help.
  void OnTrainerFailed(StepRunNumber run, std::string reason, bool fatal);
  /// The step of the last kApply or kReplay is in the state.
  void OnApplied();
  /// The trainer broke it off, so the memory holds no state: it is copied anew.
  void OnApplyFailed();

  // ---- sums ----

  std::optional<GroupRing> WantedRing() const;
  /// Absent: nothing is to be added now.
  std::optional<WantedSum> WantedSums() const;
  /// Every bucket of the step is added. `digest`: of all sums, in order.
  void OnSum(AttemptNumber attempt, StepNumber step, uint32_t digest);
  void OnSumFailed(AttemptNumber attempt, SuspectedMember suspect);
  /// Applied sums of this lineage that others may ask for are those of later steps than this one;
  /// absent: of none.
  std::optional<StepNumber> SumsKeptAfter() const;

  // ---- the state ----

  /// Its state is older than that of the step, and will probably come to it.
  bool WillApply(LineageNumber lineage, StepNumber step) const {
    return state_.has_value() && state_->lineage == lineage && state_->step < step;
  }
  /// It is a member, and no step has happened that is not in its state.
  bool HasAllSums() const { return IsMember() && HasNewestState(); }
  /// The holders have labelled every stripe with this state.
  void OnStateCopied(StateLabel label);
  /// A holder was not reached, or sent something else. The transfer is tried again after a pause.
  void OnTransferFailed(TimePoint now);
  /// Pieces that are only stored cannot be read. The transfer is tried again, and the master hears
  /// of it.
  void OnStateUnreadable(UnreadableState what, TimePoint now);
  void OnSumFetched(StepNumber step);
  /// A holder will have the sum, but its trainer still applies it, however long that takes: the
  /// next step waits for the newcomer, so it soon asks again.
  void OnSumLater(TimePoint now);
  /// No holder has the sum.
  void OnSumMissing(StepNumber step);

  /// `digest`: if the order wants it, else 0.
  void OnCaptured(StateStripe stripe, uint64_t digest = 0);
  void OnDigest(uint64_t digest);
  /// The held copy of this state is stored as this object.
  void OnStored(StateLabel label, std::string object);
  /// It cannot be stored now.
  void OnNotStored(std::string why) { unwritten_ = std::move(why); }

  // ---- what the process knows, for lines on stderr and for the shell ----

  const std::optional<StateLabel>& state() const { return state_; }
  StepRunNumber run() const { return run_.number(); }
  AttemptNumber attempt() const { return view_.attempt; }
  MemberPhase phase() const;
  bool computes() const { return phase() == MemberPhase::kComputing; }
  /// The job has succeeded, and the registered memory is the state after its last step.
  bool HasFinalState() const;
  /// The newest answer.
  const GroupExchangeReply& view() const { return view_; }
  /// Why this process can never take part; empty: it can.
  std::string_view refused() const {
    return view_.standing == GroupStanding::kRefused ? std::string_view(view_.waits) : "";
  }

 private:
  /// What the trainer's thread is inside of.
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
  /// Everything that follows from the newest answer and the state.
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
  /// What the shell was told last.
  std::optional<GroupRing> told_ring_;
  std::optional<WantedSum> told_sums_;
  bool told_to_stop_ = false;  // the transfer in progress
  /// The newest answer that was taken.
  GroupExchangeReply view_;
  uint64_t sequence_;
  std::optional<GroupExchangeRequest> sent_;
  bool leaving_ = false;

  /// Absent: the registered memory holds no state of a lineage.
  std::optional<StateLabel> state_;
  /// The registered memory is as the trainer has made it.
  bool untouched_ = true;
  Inside inside_ = Inside::kNothing;
  /// The trainer's thread is in the library, and has nothing to do. It made this core there.
  bool trainer_waits_ = true;

  ComputedShare run_;
  uint64_t minibatch_us_ = 0;
  /// The sum of the current attempt, or the committed one that is to be applied.
  std::optional<HeldSum> sum_;
  bool voted_ = false;
  bool committed_ = false;
  uint64_t committed_records_ = 0;
  bool evaluation_ = false;  // what sum_ is of
  /// The fetched sum of the next step is to be applied.
  bool fetched_ = false;
  std::optional<FailedStep> failed_;
  std::vector<SuspectedMember> suspected_;

  /// In progress.
  std::optional<GroupTransfer> transfer_;
  std::optional<TimePoint> retry_at_;
  /// Since when no holder of the sum has answered.
  std::optional<TimePoint> no_answer_since_;
  std::optional<UnreadableState> unreadable_;  // by the last copy
  /// A state whose later sums nobody has.
  std::optional<StateLabel> useless_source_;

  /// The newest capture that was asked for, and the one that was begun last.
  std::optional<CaptureOrder> capture_, taken_;
  bool capturing_ = false;
  std::optional<HeldCapture> held_;
  std::string unwritten_;
  /// The newest digest of the state, and the state of which one is being made.
  std::optional<StateDigest> digest_;
  std::optional<StateLabel> digesting_;
};

}  // namespace muster::sdk
