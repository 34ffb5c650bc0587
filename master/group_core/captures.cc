#include "master/group_core/captures.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {
namespace {

/// A copy is asked for anew if nobody has got on with it for so long.
constexpr std::chrono::seconds kCopyLimit{60};
/// So are stripes that are being stored.
constexpr std::chrono::minutes kStoreLimit{10};
/// Until the first checkpoint, so that a short job loses little.
constexpr std::chrono::milliseconds kFirstIntervalMin{2'000};
/// Learners that cannot keep up get this many times more sums, at most.
constexpr uint32_t kMoreSumsMax = 6;
/// A learner has two steps to fetch when it joins, and meanwhile another one happens.
constexpr uint64_t kKeptSumsMin = 4;
/// A checkpoint waits for learners for so many intervals, and after each capture that was of no use
/// for twice as many.
constexpr uint32_t kPutOffIntervals = 2;
/// A learner that has moved nothing for so many times the silence limit does not get on.
constexpr int kIdleLimits = 2;

/// Of all sums of a step, as members send them to each other.
uint64_t SumBytes(const GroupModelRecord& model) {
  uint64_t bytes = 0;
  for (const GroupTensor& tensor : model.tensors) {
    if (!tensor.summed) continue;
    const bool half = tensor.dtype == GroupDtype::kBfloat16;
    const bool twice = tensor.dtype == GroupDtype::kFixedPoint;
    bytes += tensor.elements * (half ? 2 : twice ? 8 : 4);
  }
  return bytes;
}

}  // namespace

bool Captures::AnyLearner() const {
  return std::ranges::any_of(books_->processes.all(), [](const auto& process) {
    return process.second.standing == GroupStanding::kLearner;
  });
}

bool Captures::AnyCatchesUp() const {
  return std::ranges::any_of(books_->processes.all(), [](const auto& process) {
    return process.second.catches_up.has_value();
  });
}

bool Captures::Complete() const {
  return std::ranges::all_of(copied_, [](bool copied) { return copied; });
}

bool Captures::CanBeHad(size_t rank) const {
  return books_->IsMember(holders_[rank]) || !stripes_[rank].object.empty();
}

bool Captures::IsOfAsked(const HeldCapture& held, uint32_t rank) const {
  return held.label == StateLabel{lineage_, asked_->step} && held.stripes == asked_->stripes &&
         held.stripe.stripe == rank;
}

void Captures::TakeStripe(uint32_t rank, const HeldCapture& held) {
  if (!IsOfAsked(held, rank)) return;
  StateStripe& stripe = stripes_[rank];
  if (copied_[rank] && !stripe.object.empty()) return;
  const bool news = !copied_[rank];
  copied_[rank] = true;
  stripe = held.stripe;
  digests_[rank] = held.digest;
  // What was stored for another capture may be deleted at any time.
  if (!stores_ || !stripe.object.starts_with(asked_->object_prefix)) stripe.object.clear();
  if (news && Complete()) ++number_;
}

bool Captures::Differs() const {
  uint64_t known = 0;
  for (const uint64_t digest : digests_) {
    if (digest != 0 && known != 0 && digest != known) return true;
    known = std::max(known, digest);
  }
  return false;
}

void Captures::WatchLearners(TimePoint now) {
  decltype(learned_) learned;
  for (const auto& [worker, process] : books_->processes.all()) {
    if (process.standing != GroupStanding::kLearner) continue;
    learned.emplace_back(process.report.state, process.report.moved);
  }
  if (learned == learned_) return;
  learned_ = std::move(learned);
  learned_at_ = now;
}

void Captures::WatchHolders(TimePoint now) {
  decltype(written_) written;
  bool any_applies = false;  // it copies only after that
  for (uint32_t rank = 0; rank < holders_.size(); ++rank) {
    const Process* const process = books_->processes.Find(holders_[rank]);
    written.emplace_back(process == nullptr ? 0 : process->report.written, stripes_[rank]);
    any_applies = any_applies || (process != nullptr && !copied_[rank] &&
                                  process->report.phase == MemberPhase::kApplying);
  }
  if (written == written_ && !any_applies) return;
  written_ = std::move(written);
  written_at_ = now;
}

void Captures::Take(TimePoint now) {
  WatchLearners(now);
  if (!AnyLearner() && !AnyCatchesUp()) {
    for_learners_ = false;
    captures_for_learners_ = 0;
  }
  if (!asked_.has_value()) return;
  for (uint32_t rank = 0; rank < holders_.size(); ++rank) {
    const Process* const process = books_->processes.Find(holders_[rank]);
    if (process == nullptr || !process->report.capture.has_value()) continue;
    TakeStripe(rank, *process->report.capture);
  }
  WatchHolders(now);
  if (Differs()) {
    // The next one is due at once: without those whose state is not that of most members.
    if (stores_) checkpoint_at_ -= books_->options.checkpoint_interval;
    return Drop();
  }
  AcceptStored();
  if (!Complete() && now - written_at_ >= kCopyLimit) return Drop();
  if (stores_ && now - written_at_ >= kStoreLimit) return Drop();
  // Nobody needs the copy any more.
  if (Complete() && !stores_ && !for_learners_) Drop();
}

void Captures::AcceptStored() {
  const bool stored = std::ranges::all_of(
      stripes_, [](const StateStripe& stripe) { return !stripe.object.empty(); });
  Lineage& lineage = books_->lineage;
  // Rule 12.10.
  if (!stores_ || !Complete() || !stored || lineage_ != lineage.number() ||
      asked_->step <= lineage.checkpoint_step()) {
    return;
  }
  stores_ = false;
  if (lineage.checkpoint().has_value()) Forget(lineage.checkpoint()->stripes);
  lineage.Accept({{lineage_, asked_->step}, stripes_});
  books_->data->Checkpointed(lineage.steps_after_checkpoint());
}

void Captures::OnAttempt() {
  if (!asked_.has_value()) return;
  // The ranks of a new attempt are others, so a capture that is not complete never will be.
  bool whole = Complete();
  for (size_t rank = 0; rank < holders_.size(); ++rank) whole = whole && CanBeHad(rank);
  if (!whole) Drop();
}

void Captures::Drop() {
  // The objects of an accepted checkpoint belong to its record.
  if (stores_) Forget(stripes_);
  asked_.reset();
  stores_ = for_learners_ = false;
  holders_.clear();
  copied_.clear();
  stripes_.clear();
  digests_.clear();
  ++number_;
}

void Captures::Forget(const std::vector<StateStripe>& stripes) {
  for (const StateStripe& stripe : stripes) {
    if (!stripe.object.empty()) unused_.push_back(stripe.object);
  }
}

bool Captures::NeedsCheckpoint(TimePoint now) const {
  const Lineage& lineage = books_->lineage;
  if (stores_ || lineage.step() <= lineage.checkpoint_step()) return false;
  const std::chrono::milliseconds whole = books_->options.checkpoint_interval;
  const auto interval = lineage.checkpoint_step() == StepNumber()
                            ? std::min(whole, std::max(whole / 10, kFirstIntervalMin))
                            : whole;
  return now - checkpoint_at_ >= interval || IsAwaited();
}

bool Captures::IsAwaited() const {
  // Rule 12.17.
  return books_->AllMembersLeave() || books_->data->NeedsCheckpoint();
}

uint64_t Captures::KeptSumsMax() const {
  const uint64_t steps = uint64_t{books_->options.kept_sums_max}
                         << std::min(captures_for_learners_, kMoreSumsMax);
  const uint64_t bytes = std::max<uint64_t>(SumBytes(books_->lineage.model()), 1);
  return std::max(std::min(steps, books_->options.kept_bytes_max / bytes), kKeptSumsMin);
}

bool Captures::IsOld() const {
  return books_->lineage.step().value() - asked_->step.value() > KeptSumsMax();
}

bool Captures::IsInUse(TimePoint now) const {
  if (!asked_.has_value() || !for_learners_ || !AnyLearner() || IsOld()) return false;
  const bool gets_on = now - learned_at_ < kIdleLimits * books_->options.silence_limit;
  const auto put_off = books_->options.checkpoint_interval *
                       (kPutOffIntervals << std::min(captures_for_learners_, kMoreSumsMax));
  return gets_on && now - asked_at_ < put_off;
}

bool Captures::NeedsSource() const {
  return AnyLearner() && (!asked_.has_value() || !for_learners_ || IsOld() || IsUnreadable());
}

bool Captures::IsUnreadable() const {
  const auto held = [this](const GroupProcess& holder) { return books_->IsMember(holder); };
  if (std::ranges::all_of(holders_, held)) return false;
  return std::ranges::any_of(books_->processes.all(), [](const auto& process) {
    return process.second.standing == GroupStanding::kLearner &&
           process.second.report.unreadable.has_value();
  });
}

void Captures::Ask(TimePoint now) {
  if (books_->members.empty() || pending() || AnyCatchesUp()) return;
  const bool checkpoint = NeedsCheckpoint(now) && (IsAwaited() || !IsInUse(now));
  // A new capture would end the one that is being stored.
  if (!checkpoint && stores_) return GiveUpLearners();
  if (!checkpoint && !NeedsSource()) return;
  Drop();
  const Lineage& lineage = books_->lineage;
  lineage_ = lineage.number();
  holders_ = books_->members;
  copied_.assign(holders_.size(), false);
  stripes_.assign(holders_.size(), StateStripe());
  digests_.assign(holders_.size(), 0);
  asked_ = {lineage.step(), lineage.attempt(), static_cast<uint32_t>(holders_.size()), ""};
  asked_at_ = written_at_ = now;
  written_.clear();
  stores_ = checkpoint;
  for_learners_ = AnyLearner();
  if (for_learners_) ++captures_for_learners_;
  if (!checkpoint) return;
  checkpoint_at_ = now;
  // No two captures have the same names, because the objects of one that is dropped are deleted.
  asked_->object_prefix =
      fmt::format("{}r{}-s{}-a{}-c{}-", books_->options.object_prefix, lineage_.value(),
                  asked_->step.value(), asked_->attempt.value(), number_);
}

/// The next capture is for them, too.
void Captures::GiveUpLearners() {
  if (!for_learners_ || !IsOld()) return;
  for_learners_ = false;
  ++number_;
}

std::optional<StateSource> Captures::Source() const {
  StateSource source;
  const Lineage& lineage = books_->lineage;
  if (asked_.has_value() && Complete() && for_learners_) {
    source.label = {lineage_, asked_->step};
    source.stripes = stripes_;
    for (size_t rank = 0; rank < holders_.size(); ++rank) {
      source.holders.emplace_back();
      if (!books_->IsMember(holders_[rank])) continue;
      source.holders.back() = {holders_[rank].worker, holders_[rank].incarnation,
                               books_->processes.Find(holders_[rank])->introduction->addresses};
    }
    return source;
  }
  // The state after the step of the checkpoint is the same in all lineages since.
  if (lineage.checkpoint().has_value() && lineage.checkpoint_step() == lineage.step()) {
    source.label = {lineage.number(), lineage.step()};
    source.stripes = lineage.checkpoint()->stripes;
    source.holders.resize(source.stripes.size());
    return source;
  }
  return std::nullopt;
}

}  // namespace muster
