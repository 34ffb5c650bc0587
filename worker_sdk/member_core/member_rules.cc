#include <utility>

#include "worker_sdk/member_core/member_core.h"

/// The rules of docs/protocol.md, section 12, that a member keeps, each as a predicate, and what
/// follows from them after a change.
namespace muster::sdk {

bool MemberCore::IsNews(const GroupExchangeReply& reply) const {
  if (reply.master_incarnation != view_.master_incarnation) {
    return reply.master_incarnation > view_.master_incarnation;
  }
  return reply.news > view_.news;
}

/// True if the master's answer commits the sum of this member. A commit names its attempt. Only the
/// sum of that attempt is the step, and only on top of the state before it. If the step is the base
/// of a new lineage, it happened in the lineage before.
bool MemberCore::CommitsHeldSum() const {
  if (!sum_.has_value() || !state_.has_value()) return false;
  // Rule 12.3.
  bool lineage = view_.lineage == state_->lineage ||
                 (view_.lineage.value() == state_->lineage.value() + 1 && view_.base == view_.step);
  return lineage && sum_->step == view_.step && sum_->attempt == view_.step_attempt &&
         sum_->step.value() == state_->step.value() + 1;
}

bool MemberCore::HasNewestState() const {
  return state_ == StateLabel{view_.lineage, view_.step} && !committed_ && !fetched_ &&
         inside_ != Inside::kApplying;
}

/// A learner also hears that the job is over, even if it has copied only a part of the state. If
/// the job has failed or was cancelled, no state is final, because it would replace a finished
/// model.
bool MemberCore::HasFinalState() const {
  return view_.directive == JobDirective::kEnd && view_.succeeded && HasNewestState();
}

// Rule 12.11: the base is the same state in both lineages.
bool MemberCore::SameStateInNewLineage(const StateLabel& label) const {
  return label.lineage.value() + 1 == view_.lineage.value() && label.step == view_.base;
}

bool MemberCore::Over() const {
  if (view_.directive == JobDirective::kEnd || view_.standing == GroupStanding::kRefused) {
    return true;
  }
  bool drained = view_.directive == JobDirective::kDrain;
  return (leaving_ || drained) && !IsMember();
}

/// True if nobody has a state, the lineage has not begun, and this process has no initial state to
/// offer.
bool MemberCore::MustRestart() const {
  bool waits =
      view_.standing == GroupStanding::kWaiting || view_.standing == GroupStanding::kLearner;
  return waits && !state_.has_value() && !untouched_ && !transfer_.has_value() &&
         view_.members.empty() && !view_.source.has_value() && view_.step == StepNumber();
}

/// True while the shell copies to or from the registered memory.
bool MemberCore::UsesMemory() const {
  return Copies() || (transfer_.has_value() && transfer_->kind == GroupTransfer::Kind::kCopyState);
}

bool MemberCore::MayCompute() const {
  return IsMember() && HasNewestState() && view_.work.has_value() && !failed_.has_value() &&
         run_.number() != 0 && !run_.complete();
}

bool MemberCore::Evaluates() const {
  return view_.work.has_value() && view_.work->work.mode == DatasetMode::kEvaluate;
}

/// True if everything that the member must push again is in the tables.
bool MemberCore::HasReplayed() const {
  return IsMember() && HasNewestState() && Replays() && run_.reported() && !failed_.has_value();
}

bool MemberCore::Captured(const CaptureOrder& order) const {
  return held_.has_value() && held_->label == order.label && held_->stripes == order.stripes &&
         held_->stripe.stripe == order.stripe &&
         (order.object_prefix.empty() || order.object_prefix == taken_->object_prefix);
}

/// A capture is due if the present state has its label, between two steps.
bool MemberCore::CaptureDue() const {
  // Rule 12.8.
  return capture_.has_value() && !capturing_ && state_ == capture_->label &&
         inside_ != Inside::kApplying && !Captured(*capture_);
}

/// A digest is due if the vote for the step must contain the digest of the state before it.
bool MemberCore::DigestDue() const {
  return IsMember() && HasNewestState() && view_.work.has_value() && view_.work->check &&
         !HasDigest() && !Copies();
}

/// True if a state must be copied. The trainer's thread must be outside of its loop, because it
/// reads the state there.
bool MemberCore::NeedsCopy() const {
  if (view_.standing != GroupStanding::kLearner || !view_.source.has_value() || Over())
    return false;
  if (inside_ != Inside::kNothing || Copies() || committed_ || fetched_) return false;
  if (useless_source_ == view_.source->label) return false;
  return !state_.has_value() || state_->step < view_.source->label.step;
}

bool MemberCore::NeedsSum() const {
  bool can_go_on = state_.has_value() && state_->lineage == view_.lineage &&
                   state_->step < view_.step && !committed_ && !fetched_ &&
                   inside_ != Inside::kApplying && !Over();
  if (!can_go_on) return false;
  bool learner = view_.standing == GroupStanding::kLearner && view_.keep_sums &&
                 (!view_.source.has_value() || view_.source->label.step <= state_->step);
  return IsMember() || learner;
}

void MemberCore::Settle() {
  DropRefusedState();
  AdoptLineage();
  AdoptInitialState();
  PlanCapture();
  AssignWork();
  Vote();
}

/// The other members have another state, so this one is dropped, and so is its copy.
void MemberCore::DropRefusedState() {
  // While the trainer applies a step, the memory is between two states. It is dropped after that.
  if (!view_.drop_state || !state_.has_value() || inside_ == Inside::kApplying) return;
  LoseState();
  untouched_ = false;
  held_.reset();
}

void MemberCore::AdoptLineage() {
  if (!state_.has_value() || state_->lineage == view_.lineage) return;
  // While the trainer applies a step, the memory is between two states. The state after the step
  // decides.
  if (inside_ == Inside::kApplying) return;
  if (committed_ && view_.base > state_->step) return;
  DropSum();
  fetched_ = false;
  run_.Drop();
  if (SameStateInNewLineage(*state_)) {
    state_->lineage = view_.lineage;
  } else {
    LoseState();
  }
}

void MemberCore::AdoptInitialState() {
  bool beginning = view_.initial_is_base && view_.step == view_.base;
  if (beginning && untouched_ && !state_.has_value() && !transfer_.has_value()) {
    state_ = StateLabel{view_.lineage, view_.base};
  }
}

void MemberCore::AssignWork() {
  bool elsewhere =
      view_.standing == GroupStanding::kLearner || view_.standing == GroupStanding::kRefused;
  // Other members compute the minibatches of an evicted member.
  if (elsewhere && run_.number() != 0) run_.Drop();
  if (!IsMember() || !HasNewestState() || !view_.work.has_value()) return;
  const StepWork& work = *view_.work;
  if (work.step.value() != view_.step.value() + 1) return;
  const LeaseToken replay = work.replay ? work.begun : LeaseToken();
  run_.Assign({view_.lineage, work.step, work.shard, replay}, work.share.spans);
}

/// The capture names an attempt, and the ranks of that attempt count. So an order from that attempt
/// stays when the members change.
void MemberCore::PlanCapture() {
  if (!view_.capture.has_value()) {
    capture_.reset();
    return;
  }
  const StateCapture& asked = *view_.capture;
  StateLabel label{view_.lineage, asked.step};
  if (IsMember() && view_.attempt == asked.attempt) {
    capture_ = CaptureOrder{label, view_.rank, asked.stripes, asked.object_prefix};
  } else if (capture_.has_value() &&
             (capture_->label != label || capture_->stripes != asked.stripes)) {
    capture_.reset();
  }
}

/// A vote needs the sum, and the metrics of every minibatch of the share.
void MemberCore::Vote() {
  bool evaluated = IsMember() && HasNewestState() && Evaluates() && run_.reported() &&
                   !failed_.has_value() && !sum_.has_value();
  if (evaluated) {
    sum_ = HeldSum{view_.attempt, view_.work->step, 0, {}};
    evaluation_ = true;
  }
  if (!sum_.has_value() || voted_ || !run_.reported()) return;
  if (view_.work.has_value() && view_.work->check && !HasDigest()) return;
  sum_->metrics = run_.metrics();
  sum_->pushed_under = run_.pushed_under();
  voted_ = true;
}

void MemberCore::DropSum() {
  sum_.reset();
  voted_ = committed_ = evaluation_ = false;
}

void MemberCore::LoseState() {
  state_.reset();
  digest_.reset();
  DropSum();
  fetched_ = false;
  run_.Drop();
}

}  // namespace muster::sdk
