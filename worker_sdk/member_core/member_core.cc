#include "worker_sdk/member_core/member_core.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster::sdk {
namespace {

constexpr uint32_t kSumsPerPause = 10;

StepNumber After(StepNumber step) {
  return StepNumber(step.value() + 1);
}

}  // namespace

void MemberEffects::Add(MemberEffects later) {
  task = later.task;
  call = later.call;
  ring = ring || later.ring;
  sums = sums || later.sums;
  // A new transfer begins only when the one before is over, so an earlier order to stop is done.
  stop_transfer = (stop_transfer && !later.transfer.has_value()) || later.stop_transfer;
  if (later.transfer.has_value()) transfer = std::move(later.transfer);
  if (later.capture.has_value()) capture = std::move(later.capture);
  if (later.digest.has_value()) digest = later.digest;
  again = later.again;
}

MemberEffects MemberCore::TakeEffects(TimePoint now) {
  MemberEffects effects;
  effects.capture = BeginCapture();
  effects.digest = BeginDigest();
  effects.transfer = BeginTransfer(now);
  effects.again = retry_at_;
  effects.stop_transfer = transfer_.has_value() && !WantsTransfer() && !told_to_stop_;
  told_to_stop_ = told_to_stop_ || effects.stop_transfer;
  effects.ring = !WantsRing(told_ring_);
  if (effects.ring) told_ring_ = WantedRing();
  std::optional<WantedSum> sums = WantedSums();
  effects.sums = sums != told_sums_;
  if (effects.sums) told_sums_ = std::move(sums);
  effects.task = NextKind() != TrainerTask::Kind::kWait;
  effects.call = request_changed();
  return effects;
}

// ---- the exchange ----

GroupExchangeRequest MemberCore::Content() const {
  GroupExchangeRequest request;
  request.worker = options_.worker;
  request.incarnation = options_.incarnation;
  request.master_incarnation = view_.master_incarnation;
  request.news = view_.news;
  if (view_.standing == GroupStanding::kUnknown) request.introduction = options_.introduction;
  if (IsMember()) request.attempt = view_.attempt;
  request.state = state_;
  request.phase = phase();
  if (voted_) request.sum = sum_;
  if (HasReplayed()) request.replayed = {view_.work->token, run_.pushed_under()};
  request.failed = failed_;
  request.suspected = suspected_;
  request.capture = held_;
  request.digest = digest_;
  request.minibatch_us = minibatch_us_;
  request.leaving = leaving_;
  if (!state_.has_value()) request.unreadable = unreadable_;
  request.unwritten = unwritten_;
  return request;
}

GroupExchangeRequest MemberCore::Request() {
  GroupExchangeRequest request = Content();
  sent_ = request;
  request.sequence = ++sequence_;
  return request;
}

std::optional<GroupExchangeRequest> MemberCore::Farewell() {
  const bool known = view_.standing != GroupStanding::kUnknown || sent_.has_value();
  if (!known || view_.directive == JobDirective::kEnd) return std::nullopt;
  GroupExchangeRequest farewell;
  farewell.worker = options_.worker;
  farewell.incarnation = options_.incarnation;
  farewell.sequence = ++sequence_;
  farewell.master_incarnation = view_.master_incarnation;
  farewell.news = view_.news;
  farewell.gone = true;
  return farewell;
}

bool MemberCore::request_changed() const {
  if (!sent_.has_value()) return true;
  GroupExchangeRequest now = Content();
  // A change of these is no news from a member, because its vote says as much. It is news from a
  // learner, because the others wait for what the learner has.
  if (IsMember()) now.state = sent_->state, now.phase = sent_->phase;
  now.minibatch_us = sent_->minibatch_us;
  now.master_incarnation = sent_->master_incarnation;
  now.news = sent_->news;
  // The digest is sent together with a vote or a copy.
  now.digest = sent_->digest;
  // It is no news that a sum was applied, because the master has committed it.
  bool applied = sent_->sum.has_value() && state_.has_value() && sent_->sum->step == state_->step &&
                 IsMember();
  if (applied && !now.sum.has_value()) now.sum = sent_->sum;
  return now != *sent_;
}

bool MemberCore::NextCallIsVote() const {
  return IsMember() && view_.work.has_value() && !view_.capture.has_value() &&
         view_.directive == JobDirective::kWork && !leaving_;
}

void MemberCore::OnReply(const GroupExchangeReply& reply) {
  if (!IsNews(reply)) return;
  if (reply.standing == GroupStanding::kUnknown) {
    // This master does not know the process, so its answer says nothing about steps either.
    view_.master_incarnation = reply.master_incarnation;
    view_.news = reply.news;
    view_.directive = reply.directive;
    // No step can happen without the vote of a member. So a member that has not voted knows all
    // steps.
    const bool knows_last = view_.succeeded || (IsMember() && !voted_);
    view_.succeeded = reply.succeeded && knows_last;
    view_.standing = GroupStanding::kUnknown;
    return;
  }
  bool other_attempt = reply.attempt != view_.attempt;
  std::vector<GroupMember> members = std::move(view_.members);
  view_ = reply;
  const bool told = !other_attempt && IsMember() && reply.members.empty();
  if (told) view_.members = std::move(members);
  TakeCommit();
  // Rule 12.6: a sum that the answer commits is taken first.
  if (other_attempt) EndAttempt();
  Settle();
}

/// If the answer commits a sum of the old attempt, that sum was taken before this call.
void MemberCore::EndAttempt() {
  if (!committed_) DropSum();
  failed_.reset();
  suspected_.clear();
}

void MemberCore::TakeCommit() {
  if (!CommitsHeldSum()) return;
  committed_ = true;
  committed_records_ = view_.step_records;
}

// ---- the trainer's thread ----

TrainerTask::Kind MemberCore::NextKind() const {
  using Kind = TrainerTask::Kind;
  bool applying = inside_ == Inside::kApplying;
  if (!applying && (Over() || MustRestart())) {
    // The trainer may free the memory when it hears of the end, so this waits until nothing uses
    // it.
    if (UsesMemory()) return Kind::kWait;
    return Over() ? Kind::kEnd : Kind::kRestart;
  }
  if (applying || ((committed_ || fetched_) && !CaptureDue() && !Copies())) {
    return committed_ ? Kind::kApply : Kind::kReplay;
  }
  return MayCompute() ? Kind::kCompute : Kind::kWait;
}

TrainerTask MemberCore::NextTask() {
  using Kind = TrainerTask::Kind;
  if (inside_ == Inside::kComputing) inside_ = Inside::kNothing;
  TrainerTask task;
  task.kind = NextKind();
  trainer_waits_ = task.kind == Kind::kWait;
  if (task.kind == Kind::kApply || task.kind == Kind::kReplay) {
    inside_ = Inside::kApplying;
    untouched_ = false;
    task.step = After(state_->step);
    if (committed_) {
      task.attempt = sum_->attempt;
      task.evaluation = evaluation_;
      task.records = committed_records_;
    }
  }
  if (task.kind != Kind::kCompute) return task;
  inside_ = Inside::kComputing;
  task.step = view_.work->step;
  task.attempt = view_.attempt;
  task.run = run_.number();
  task.work = *view_.work;
  task.spans = run_.Missing();
  return task;
}

void MemberCore::OnMinibatch(StepRunNumber run, MinibatchIndex minibatch,
                             std::chrono::microseconds took) {
  if (!run_.Is(run)) return;
  run_.Computed(run, minibatch);
  uint64_t us = static_cast<uint64_t>(std::max<int64_t>(took.count(), 1));
  minibatch_us_ = minibatch_us_ == 0 ? us : (3 * minibatch_us_ + us) / 4;
  Settle();
}

void MemberCore::OnComputed(StepRunNumber run, ShardMetrics metrics, RestoreEpoch pushed_under) {
  run_.Report(run, std::move(metrics), pushed_under);
  Settle();
}

void MemberCore::OnTrainerFailed(StepRunNumber run, std::string reason, bool fatal) {
  // A member cannot take back its vote.
  if (!run_.Is(run) || voted_ || committed_ || failed_.has_value() || HasReplayed()) return;
  failed_ = FailedStep{view_.attempt, view_.work.has_value() ? view_.work->step : StepNumber(),
                       std::move(reason), fatal};
  run_.Drop();
  DropSum();
  Settle();
}

void MemberCore::OnApplied() {
  MUSTER_CHECK(inside_ == Inside::kApplying && state_.has_value());
  inside_ = Inside::kNothing;
  state_->step = After(state_->step);
  DropSum();
  fetched_ = false;
  Settle();
}

void MemberCore::OnApplyFailed() {
  MUSTER_CHECK(inside_ == Inside::kApplying);
  inside_ = Inside::kNothing;
  LoseState();
  Settle();
}

// ---- sums ----

std::optional<GroupRing> MemberCore::WantedRing() const {
  if (!IsMember() || Over()) return std::nullopt;
  return GroupRing{view_.lineage, view_.attempt, view_.rank, view_.members};
}

bool MemberCore::WantsRing(const std::optional<GroupRing>& ring) const {
  if (!IsMember() || Over()) return !ring.has_value();
  // The members never change within an attempt.
  return ring.has_value() && ring->lineage == view_.lineage && ring->attempt == view_.attempt;
}

std::optional<WantedSum> MemberCore::WantedSums() const {
  if (!IsMember() || !HasNewestState() || !view_.work.has_value() || run_.number() == 0 ||
      Evaluates() || Replays() || failed_.has_value() || !suspected_.empty() || sum_.has_value()) {
    return std::nullopt;
  }
  return WantedSum{view_.attempt, view_.work->step, run_.number(), run_.share()};
}

void MemberCore::OnSum(AttemptNumber attempt, StepNumber step, uint32_t digest) {
  std::optional<WantedSum> wanted = WantedSums();
  if (!wanted.has_value() || wanted->step != step || wanted->attempt != attempt) return;
  sum_ = HeldSum{wanted->attempt, step, digest, {}};
  evaluation_ = false;
  Settle();
}

void MemberCore::OnSumFailed(AttemptNumber attempt, SuspectedMember suspect) {
  if (!IsMember() || attempt != view_.attempt) return;
  auto same = [&](const SuspectedMember& other) {
    return other.worker == suspect.worker && other.incarnation == suspect.incarnation;
  };
  if (std::ranges::none_of(suspected_, same)) suspected_.push_back(std::move(suspect));
}

std::optional<StepNumber> MemberCore::SumsKeptAfter() const {
  if (!view_.keep_sums) return std::nullopt;
  StepNumber after = view_.base;
  if (held_.has_value() && held_->label.lineage == view_.lineage) {
    after = std::max(after, held_->label.step);
  }
  if (view_.capture.has_value() && state_.has_value() && state_->step >= view_.capture->step) {
    after = std::max(after, view_.capture->step);
  }
  return after;
}

// ---- the state ----

std::optional<GroupTransfer> MemberCore::BeginTransfer(TimePoint now) {
  // While the trainer's thread is not in the library, the trainer may read its state.
  if (transfer_.has_value() || !trainer_waits_) return std::nullopt;
  if (retry_at_.has_value() && now < *retry_at_) return std::nullopt;
  retry_at_.reset();
  told_to_stop_ = false;
  if (NeedsCopy()) {
    // As soon as the first byte is copied, the memory is a mixture of two states.
    LoseState();
    untouched_ = false;
    transfer_ = GroupTransfer{GroupTransfer::Kind::kCopyState,
                              *view_.source,
                              view_.lineage,
                              view_.source->label.step,
                              {}};
  } else if (NeedsSum()) {
    transfer_ =
        GroupTransfer{GroupTransfer::Kind::kFetchSum, {}, view_.lineage, After(state_->step), {}};
    for (const GroupMember& member : view_.members) {
      bool self = member.worker == options_.worker;
      if (!self) transfer_->holders.push_back(member);
    }
  }
  return transfer_;
}

bool MemberCore::WantsTransfer() const {
  if (transfer_->lineage != view_.lineage || Over()) return false;
  return transfer_->kind == GroupTransfer::Kind::kFetchSum ||
         view_.standing == GroupStanding::kLearner;
}

void MemberCore::OnStateCopied(StateLabel label) {
  if (!transfer_.has_value() || transfer_->kind != GroupTransfer::Kind::kCopyState) return;
  // The newest lineage may begin with a stored state that has the label of an older lineage.
  bool base = label == transfer_->source.label && transfer_->lineage == view_.lineage &&
              label.lineage < view_.lineage && label.step == view_.base;
  transfer_.reset();
  unreadable_.reset();
  no_answer_since_.reset();
  state_ = base ? StateLabel{view_.lineage, label.step} : label;
  Settle();
}

void MemberCore::OnTransferFailed(TimePoint now) {
  if (!transfer_.has_value()) return;
  bool sum = transfer_->kind == GroupTransfer::Kind::kFetchSum;
  if (sum && !no_answer_since_.has_value()) no_answer_since_ = now;
  const bool given_up = sum && now - *no_answer_since_ >= options_.no_answer_limit;
  if (given_up) return OnSumMissing(transfer_->step);
  transfer_.reset();
  retry_at_ = now + (sum ? options_.retry_pause / kSumsPerPause : options_.retry_pause);
  Settle();
}

void MemberCore::OnSumLater(TimePoint now) {
  if (!transfer_.has_value()) return;
  transfer_.reset();
  no_answer_since_.reset();
  retry_at_ = now + options_.retry_pause / kSumsPerPause;
  Settle();
}

void MemberCore::OnStateUnreadable(UnreadableState what, TimePoint now) {
  OnTransferFailed(now);
  unreadable_ = std::move(what);
  retry_at_ = now + options_.unreadable_pause;
}

void MemberCore::OnSumFetched(StepNumber step) {
  if (!transfer_.has_value() || transfer_->kind != GroupTransfer::Kind::kFetchSum) return;
  // If there was a rollback meanwhile, the state or at least its lineage has changed, and the sum
  // does not fit.
  fetched_ = transfer_->step == step &&
             state_ == StateLabel{transfer_->lineage, StepNumber(step.value() - 1)};
  transfer_.reset();
  no_answer_since_.reset();
  Settle();
}

void MemberCore::OnSumMissing(StepNumber step) {
  if (!transfer_.has_value() || transfer_->kind != GroupTransfer::Kind::kFetchSum ||
      transfer_->step != step) {
    return;
  }
  transfer_.reset();
  no_answer_since_.reset();
  // A new source may have what the lost state lacked, so only an old source is useless.
  const bool same =
      view_.source.has_value() && state_.has_value() && view_.source->label.step <= state_->step;
  if (same) useless_source_ = view_.source->label;
  LoseState();
  Settle();
}

std::optional<CaptureOrder> MemberCore::BeginCapture() {
  if (!CaptureDue()) return std::nullopt;
  capturing_ = true;
  taken_ = capture_;
  // A single member has no other member to compare its digest with.
  taken_->digest = taken_->stripes > 1 && !HasDigest();
  return taken_;
}

void MemberCore::OnCaptured(StateStripe stripe, uint64_t digest) {
  MUSTER_CHECK(capturing_);
  capturing_ = false;
  // If the labels differ, the state was dropped meanwhile.
  if (state_ == taken_->label) {
    if (digest != 0) digest_ = {taken_->label, digest};
    stripe.stripe = taken_->stripe;
    held_ = HeldCapture{taken_->label, taken_->stripes, std::move(stripe),
                        HasDigest() ? digest_->value : 0};
  }
  Settle();
}

std::optional<StateLabel> MemberCore::BeginDigest() {
  if (DigestDue()) return digesting_ = state_;
  return std::nullopt;
}

void MemberCore::OnDigest(uint64_t digest) {
  MUSTER_CHECK(digesting_.has_value());
  if (digesting_ == state_) digest_ = {*digesting_, digest};
  digesting_.reset();
  Settle();
}

void MemberCore::OnStored(StateLabel label, std::string object) {
  unwritten_.clear();
  // An object that was stored for an earlier order does not count, because the objects of that
  // order are deleted.
  const bool asked =
      held_.has_value() && held_->label == label && object.starts_with(taken_->object_prefix);
  if (asked) held_->stripe.object = std::move(object);
}

MemberPhase MemberCore::phase() const {
  if (committed_ || inside_ == Inside::kApplying) return MemberPhase::kApplying;
  if (voted_ || HasReplayed()) return MemberPhase::kVoted;
  bool member = IsMember() && HasNewestState();
  if (member && view_.work.has_value() && !failed_.has_value()) {
    // If it has its sum already, or replays, it only waits for servers that have not got its pushes
    // yet.
    const bool adds = run_.complete() && !sum_.has_value() && !Replays();
    return adds ? MemberPhase::kReducing : MemberPhase::kComputing;
  }
  // It cannot copy a state until its trainer has left the loop.
  if (!member && inside_ == Inside::kComputing) return MemberPhase::kComputing;
  bool learns = transfer_.has_value() || fetched_ || NeedsCopy() || NeedsSum();
  return learns ? MemberPhase::kLearning : MemberPhase::kIdle;
}

}  // namespace muster::sdk
