// The thread of a group that copies: its own state for others and for checkpoints, and what others
// have into its own.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"
#include "worker_sdk/session/group_impl.h"

namespace muster::internal {
namespace {

constexpr std::chrono::milliseconds kLookIfWanted{100};
/// For the first answer of a member over a kept connection, which may be dead.
constexpr std::chrono::seconds kAnswerLimit{10};
constexpr size_t kPieceBytes = size_t{4} << 20;

}  // namespace

struct GroupImpl::Capture {
  sdk::CaptureOrder order;
  StripeCopy copy;
};

/// Guarded by the group's mutex, apart from `clients`.
struct GroupImpl::Fetches {
  uint32_t pending = 0;
  absl::Status failed;  // the first error
  std::vector<std::unique_ptr<collectives::StateClient>> clients;
};

void GroupImpl::RunCopies() {
  uint64_t seen = 0;
  std::optional<TimePoint> again;
  while (AwaitNews(&copies_due_, &seen, again)) {
    again.reset();
    while (TakeCapture() || TakeDigest() || TakeTransfer(&again) || ReadAhead() ||
           PrepareCapture()) {
    }
  }
  sum_sources_.CloseAll();
}

bool GroupImpl::CopiesDue() const {
  const std::optional<ShardWork>& ahead = core_->view().ahead;
  return fetching_ || core_->CaptureDue() || core_->DigestDue() ||
         StripeBytes() > prepared_bytes_ || (trainer_waits_ && core_->NeedsTransfer()) ||
         reader_.WantsAhead(ahead);
}

bool GroupImpl::ReadAhead() {
  ShardWork work;
  {
    MutexLock lock(&mutex_);
    const std::optional<ShardWork>& ahead = core_->view().ahead;
    if (OverLocked() || !reader_.WantsAhead(ahead)) return false;
    work = *ahead;
  }
  reader_.ReadAhead(work);
  return true;
}

// ---- captures ----

uint64_t GroupImpl::StripeBytes() const {
  if (!ring_.has_value()) return 0;
  return memory_.StripeAt(0, static_cast<uint32_t>(ring_->members.size())).second;
}

/// Training waits for a copy, but not for the memory of the first one. A piece at a time, so that a
/// capture that is asked for meanwhile begins at once.
bool GroupImpl::PrepareCapture() {
  uint64_t bytes = 0;
  {
    MutexLock lock(&mutex_);
    bytes = StripeBytes();
    if (OverLocked() || bytes <= prepared_bytes_) return false;
  }
  if (!preparing_.Prepare(bytes, kPieceBytes)) return true;
  spare_->Put(std::move(preparing_));
  MutexLock lock(&mutex_);
  prepared_bytes_ = bytes;
  return true;
}

bool GroupImpl::TakeCapture() {
  std::optional<sdk::CaptureOrder> order;
  std::shared_ptr<const Capture> former;
  {
    MutexLock lock(&mutex_);
    if (!OverLocked()) order = core_->TakeCapture();
    if (!order.has_value()) return false;
    former = std::exchange(capture_, nullptr);
  }
  // Whoever reads the former one last makes its memory the spare one.
  former.reset();
  spare_->Put(std::move(preparing_));
  const std::shared_ptr<Capture> capture(new Capture{*order, spare_->Take()},
                                         [spare = spare_](Capture* last) {
                                           spare->Put(std::move(last->copy));
                                           delete last;
                                         });
  memory_.Copy(order->stripe, order->stripes, &capture->copy, &copied_);
  const uint64_t digest = order->digest ? memory_.Hash() : 0;
  MUSTER_FAILPOINT("group.after-capture");
  {
    MutexLock lock(&mutex_);
    capture_ = capture;
    prepared_bytes_ = std::max<uint64_t>(prepared_bytes_, capture->copy.bytes().size());
    core_->OnCaptured({order->stripe, capture->copy.bytes().size(), capture->copy.crc(), ""},
                      digest);
    Signal();
  }
  StoreCapture(capture);
  return true;
}

bool GroupImpl::TakeDigest() {
  {
    MutexLock lock(&mutex_);
    if (OverLocked() || !core_->TakeDigest().has_value()) return false;
  }
  const uint64_t digest = memory_.Hash();
  MutexLock lock(&mutex_);
  core_->OnDigest(digest);
  Signal();
  return true;
}

void GroupImpl::StoreCapture(const std::shared_ptr<const Capture>& capture) {
  const sdk::CaptureOrder& order = capture->order;
  if (order.object_prefix.empty()) return storer_->Drop();
  std::string object = fmt::format("{}{}", order.object_prefix, order.stripe);
  storer_->Store(object, {capture, capture->copy.bytes()},
                 [this, object, label = order.label](const absl::Status& stored) {
                   Change change(this);
                   if (stored.ok()) {
                     core_->OnStored(label, object);
                   } else {
                     core_->OnNotStored(std::string(Message(stored)));
                   }
                   return core_->view().capture.has_value();
                 });
}

absl::StatusOr<collectives::LentBytes> GroupImpl::Stripe(StateLabel label, uint32_t stripe) {
  MutexLock lock(&mutex_);
  if (capture_ != nullptr && capture_->order.label == label && capture_->order.stripe == stripe) {
    return collectives::LentBytes{capture_, capture_->copy.bytes()};
  }
  return absl::NotFoundError("this member does not hold that piece of the state");
}

absl::StatusOr<collectives::LentBytes> GroupImpl::KeptSum(LineageNumber lineage, StepNumber step,
                                                          uint32_t bucket) {
  MutexLock lock(&mutex_);
  for (const std::shared_ptr<SummedStep>& sums : kept_) {
    if (sums->after != StateLabel{lineage, step}) continue;
    // After the buckets come the facts.
    if (bucket == gradients_->size()) return collectives::LentBytes{sums, sums->facts.bytes()};
    if (bucket < sums->size()) return collectives::LentBytes{sums, sums->encoded(bucket)};
  }
  // The learner tries again. That nobody keeps the sum would cost it its state.
  if (core_.has_value() && core_->WillApply(lineage, step)) {
    return absl::FailedPreconditionError("this member has not applied the step yet");
  }
  return absl::NotFoundError("this member does not keep that sum");
}

void GroupImpl::PruneKept() {
  const std::optional<StepNumber> after = core_->SumsKeptAfter();
  const LineageNumber lineage = core_->view().lineage;
  std::erase_if(kept_, [&](const std::shared_ptr<SummedStep>& sums) {
    return !after.has_value() || sums->after.step <= *after || sums->after.lineage != lineage;
  });
}

// ---- transfers ----

bool GroupImpl::TakeTransfer(std::optional<TimePoint>* again) {
  std::optional<sdk::GroupTransfer> transfer;
  bool needless = false;  // the connections for sums
  {
    MutexLock lock(&mutex_);
    // The trainer may read its state whenever it is not in the library.
    if (OverLocked() || !trainer_waits_) return false;
    transfer = core_->TakeTransfer(clock_.Now());
    *again = core_->NextTransfer();
    needless = !transfer.has_value() && core_->HasAllSums();
    const bool copies =
        transfer.has_value() && transfer->kind == sdk::GroupTransfer::Kind::kCopyState;
    state_copied_ = state_copied_ || copies;
  }
  if (needless) sum_sources_.CloseAll();
  if (!transfer.has_value()) return false;
  absl::Status status;
  UnreadableState unreadable;
  std::shared_ptr<SummedStep> sums;
  if (transfer->kind == sdk::GroupTransfer::Kind::kCopyState) {
    status = CopyState(transfer->source, &unreadable);
    copy_failed_ = !status.ok();
  } else {
    absl::StatusOr<std::shared_ptr<SummedStep>> fetched = FetchSums(*transfer);
    status = fetched.status();
    if (fetched.ok()) sums = *std::move(fetched);
  }
  MutexLock lock(&mutex_);
  if (sums != nullptr) {
    fetched_ = sums;
    core_->OnSumFetched(transfer->step);
  } else if (status.ok()) {
    core_->OnStateCopied(transfer->source.label);
  } else if (unreadable.pieces > 0) {
    trouble_ = unreadable.error;
    core_->OnStateUnreadable(std::move(unreadable), clock_.Now());
  } else if (sums == nullptr && absl::IsNotFound(status) &&
             transfer->kind == sdk::GroupTransfer::Kind::kFetchSum) {
    core_->OnSumMissing(transfer->step);
  } else if (absl::IsFailedPrecondition(status)) {
    core_->OnSumLater(clock_.Now());
  } else {
    if (!absl::IsAborted(status)) trouble_ = Message(status);
    core_->OnTransferFailed(clock_.Now());
  }
  *again = core_->NextTransfer();
  Signal();
  return true;
}

collectives::StateClient::Done GroupImpl::Counted(Fetches* fetches) {
  {
    MutexLock lock(&mutex_);
    ++fetches->pending;
  }
  return [this, fetches](const absl::Status& status) {
    MutexLock lock(&mutex_);
    --fetches->pending;
    if (fetches->failed.ok()) fetches->failed = status;
    Signal();
  };
}

absl::Status GroupImpl::AwaitFetches(Fetches* fetches, std::optional<TimePoint> limit) {
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    fetching_ = true;
    const auto late = [&] { return limit.has_value() && clock_.Now() >= *limit; };
    while (fetches->pending > 0 && fetches->failed.ok() && !OverLocked() &&
           core_->transfer_wanted() && !late()) {
      copies_due_.WaitFor(&mutex_, kLookIfWanted);
    }
    fetching_ = false;
    status = fetches->failed;
    if (status.ok() && fetches->pending > 0) {
      status = late() ? absl::UnavailableError("a member does not answer")
                      : absl::AbortedError("the transfer is not wanted any more");
    }
  }
  // Waits for callbacks, which take the mutex.
  fetches->clients.clear();
  return status;
}

/// `soon`: the answer is small, so a member from which it does not come is given up.
absl::Status GroupImpl::AwaitSum(Fetches* fetches, const GroupMember& holder, bool soon) {
  std::optional<TimePoint> limit;
  if (soon) limit = clock_.Now() + kAnswerLimit;
  const absl::Status status = AwaitFetches(fetches, limit);
  bool answered = false;
  {
    MutexLock lock(&mutex_);
    answered = fetches->pending == 0;
  }
  // A member that does not hold the sum, or not yet, is asked again over the same connection.
  if (!answered || absl::IsUnavailable(status)) sum_sources_.Close(holder);
  return status;
}

absl::Status GroupImpl::CopyState(const StateSource& source, UnreadableState* unreadable) {
  const auto count = static_cast<uint32_t>(source.stripes.size());
  if (count == 0 || source.holders.size() != count) {
    return absl::InvalidArgumentError(
        "the master names a state without pieces, or without holders");
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t bytes = memory_.StripeAt(i, count).second;
    if (source.stripes[i].bytes == bytes && source.stripes[i].stripe == i) continue;
    return absl::InvalidArgumentError(
        fmt::format("piece {} of {} of the state has {} bytes here, not {}", i, count, bytes,
                    source.stripes[i].bytes));
  }
  MUSTER_FAILPOINT("group.before-copy");
  Fetches fetches;
  FetchStripes(source, &fetches);
  const absl::Status read = ReadStripes(source, unreadable);
  const absl::Status fetched = AwaitFetches(&fetches);
  MUSTER_RETURN_IF_ERROR(read);
  MUSTER_RETURN_IF_ERROR(fetched);
  for (uint32_t i = 0; i < count; ++i) {
    if (memory_.StripeDigest(i, count) == source.stripes[i].crc) continue;
    return absl::DataLossError(
        fmt::format("piece {} of {} of the state after step {} has come damaged", i, count,
                    source.label.step.value()));
  }
  MUSTER_FAILPOINT("group.after-copy");
  return absl::OkStatus();
}

void GroupImpl::FetchStripes(const StateSource& source, Fetches* fetches) {
  const auto count = static_cast<uint32_t>(source.stripes.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (source.holders[i].worker.empty()) continue;
    std::unique_ptr<collectives::StateClient>& client =
        fetches->clients.emplace_back(collectives::StateClient::Start(
            {.holder = source.holders[i], .listener = listener_.get()}));
    uint64_t offset = 0;
    for (const std::span<std::byte> piece : memory_.Pieces(i, count, kPieceBytes)) {
      client->FetchStripe(source.label, i, offset, piece, Counted(fetches));
      offset += piece.size();
    }
  }
}

/// A piece that cannot be read does not keep it from the others: those that are there are not read
/// again by the next try.
absl::Status GroupImpl::ReadStripes(const StateSource& source, UnreadableState* unreadable) {
  const auto count = static_cast<uint32_t>(source.stripes.size());
  absl::Status first;
  const auto moved = [this](size_t) {
    MutexLock lock(&mutex_);
    ++moved_;
    const bool wanted = !OverLocked() && core_->transfer_wanted();
    return wanted ? absl::OkStatus() : absl::AbortedError("the transfer is not wanted any more");
  };
  for (uint32_t i = 0; i < count; ++i) {
    const StateStripe& stripe = source.stripes[i];
    if (!source.holders[i].worker.empty()) continue;
    if (copy_failed_ && memory_.StripeDigest(i, count) == stripe.crc) continue;
    const absl::Status read =
        LoadStripe(store_.get(), stripe, memory_.Pieces(i, count, kPieceBytes), moved);
    if (absl::IsAborted(read)) return read;
    if (read.ok() || ++unreadable->pieces > 1) continue;
    unreadable->error = Message(read);
    first = read;
  }
  return first;
}

absl::StatusOr<std::shared_ptr<SummedStep>> GroupImpl::FetchSums(
    const sdk::GroupTransfer& transfer) {
  absl::Status other_trouble;
  for (const GroupMember& holder : transfer.holders) {
    absl::StatusOr<std::shared_ptr<SummedStep>> sums = FetchSumsFrom(transfer, holder);
    if (sums.ok() || absl::IsAborted(sums.status())) return sums;
    // One that will have it counts more than one that does not answer.
    if (absl::IsNotFound(sums.status()) || absl::IsFailedPrecondition(other_trouble)) continue;
    other_trouble = sums.status();
  }
  MUSTER_RETURN_IF_ERROR(other_trouble);
  return absl::NotFoundError(
      fmt::format("no member keeps the sums of step {}", transfer.step.value()));
}

absl::StatusOr<std::shared_ptr<SummedStep>> GroupImpl::FetchSumsFrom(
    const sdk::GroupTransfer& transfer, const GroupMember& holder) {
  Fetches asked, fetched;
  StepFacts facts;
  const auto buckets = static_cast<uint32_t>(layout().size());
  collectives::StateClient* const client = sum_sources_.To(holder, listener_.get());
  client->FetchSum(transfer.lineage, transfer.step, buckets, facts.bytes(), Counted(&asked));
  MUSTER_RETURN_IF_ERROR(AwaitSum(&asked, holder, /*soon=*/true));
  auto sums = std::make_shared<SummedStep>();
  if (facts.evaluate == 0) {
    MUSTER_ASSIGN_OR_RETURN(sums, SummedStep::Create(layout()));
  }
  sums->after = {transfer.lineage, transfer.step};
  sums->facts = facts;
  if (sums->size() == 0) return sums;
  for (uint32_t bucket = 0; bucket < buckets; ++bucket) {
    client->FetchSum(transfer.lineage, transfer.step, bucket, sums->encoded(bucket),
                     Counted(&fetched));
  }
  MUSTER_RETURN_IF_ERROR(AwaitSum(&fetched, holder, /*soon=*/false));
  MUSTER_RETURN_IF_ERROR(sums->Decode(layout()));
  if (device() != nullptr) MUSTER_RETURN_IF_ERROR(sums->CopyToDevice(layout(), device()));
  return sums;
}

}  // namespace muster::internal
