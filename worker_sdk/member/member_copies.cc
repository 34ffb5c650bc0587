#include "worker_sdk/member/member_copies.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"

namespace muster::internal {
namespace {

/// For the first answer of a member over a kept connection, which may be dead.
constexpr std::chrono::seconds kAnswerLimit{10};
constexpr size_t kPieceBytes = size_t{4} << 20;

}  // namespace

struct MemberCopies::Capture {
  sdk::CaptureOrder order;
  StripeCopy copy;
};

/// Guarded by the mutex, apart from `clients`.
struct MemberCopies::Fetches {
  uint32_t pending = 0;
  absl::Status failed;  // the first error
  std::vector<std::unique_ptr<collectives::StateClient>> clients;
};

MemberCopies::MemberCopies(Options options) : options_(std::move(options)) {}

void MemberCopies::Start(GroupMemory memory, const sdk::OwnGradients* layout,
                         collectives::Listener* listener) {
  memory_ = std::move(memory);
  layout_ = layout;
  listener_ = listener;
  storer_.emplace(options_.store.get());
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "muster-copies");
}

void MemberCopies::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  storer_.reset();
}

void MemberCopies::CarryOut(const MemberDesk::Orders& orders, uint32_t members) {
  struct Seen {
    std::optional<ShardWork> ahead;
    bool all_sums = false;
  };
  const Seen seen = options_.desk->Look(
      [](DeskContents& desk) { return Seen{desk.core->view().ahead, desk.core->HasAllSums()}; });
  const sdk::MemberEffects& effects = orders.effects;
  Jobs jobs{.capture = effects.capture, .digest = effects.digest, .transfer = effects.transfer};
  if (options_.reader->WantsAhead(seen.ahead)) jobs.ahead = seen.ahead;
  if (members > 0) jobs.room = memory_.StripeAt(0, members).second;
  MutexLock lock(&mutex_);
  jobs.close_sources = has_sources_ && seen.all_sums;
  const bool wakes = jobs.capture.has_value() || jobs.digest.has_value() ||
                     jobs.transfer.has_value() || jobs.ahead.has_value() || jobs.room > room_ ||
                     jobs.close_sources || effects.stop_transfer || orders.over;
  if (!wakes) return;
  if (jobs.capture.has_value()) jobs_.capture = jobs.capture;
  if (jobs.digest.has_value()) jobs_.digest = jobs.digest;
  if (jobs.transfer.has_value()) {
    jobs_.transfer = jobs.transfer;
    stop_transfer_ = false;
  }
  if (jobs.ahead.has_value()) jobs_.ahead = jobs.ahead;
  jobs_.room = std::max(jobs_.room, jobs.room);
  jobs_.close_sources = jobs.close_sources;
  stop_transfer_ = stop_transfer_ || effects.stop_transfer;
  stopping_ = stopping_ || orders.over;
  changed_.SignalAll();
}

bool MemberCopies::Await(Jobs* job) {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    *job = Jobs();
    if (jobs_.capture.has_value()) {
      job->capture = std::exchange(jobs_.capture, std::nullopt);
      return true;
    }
    if (jobs_.digest.has_value()) {
      job->digest = std::exchange(jobs_.digest, std::nullopt);
      return true;
    }
    if (jobs_.transfer.has_value()) {
      job->transfer = std::exchange(jobs_.transfer, std::nullopt);
      return true;
    }
    if (std::exchange(jobs_.close_sources, false)) {
      job->close_sources = true;
      has_sources_ = false;
      return true;
    }
    if (jobs_.ahead.has_value()) {
      job->ahead = std::exchange(jobs_.ahead, std::nullopt);
      return true;
    }
    if (jobs_.room > room_) {
      job->room = jobs_.room;
      return true;
    }
    changed_.Wait(&mutex_);
  }
  return false;
}

void MemberCopies::Run() {
  Jobs job;
  while (Await(&job)) {
    if (job.capture.has_value()) TakeCapture(*job.capture);
    if (job.digest.has_value()) TakeDigest();
    if (job.transfer.has_value()) Transfer(*job.transfer);
    if (job.close_sources) sum_sources_.CloseAll();
    if (job.ahead.has_value()) options_.reader->ReadAhead(*job.ahead);
    if (job.room > 0) MakeRoom(job.room);
  }
  sum_sources_.CloseAll();
}

// ---- captures ----

/// Training waits for a copy, but not for the memory of the first one. A piece at a time, so that a
/// capture that is asked for meanwhile begins at once.
void MemberCopies::MakeRoom(uint64_t bytes) {
  if (!preparing_.Prepare(bytes, kPieceBytes)) return;
  spare_->Put(std::move(preparing_));
  MutexLock lock(&mutex_);
  room_ = std::max(room_, bytes);
}

void MemberCopies::TakeCapture(const sdk::CaptureOrder& order) {
  std::shared_ptr<const Capture> former;
  {
    MutexLock lock(&mutex_);
    former = std::exchange(capture_, nullptr);
  }
  // Whoever reads the former one last makes its memory the spare one.
  former.reset();
  spare_->Put(std::move(preparing_));
  const std::shared_ptr<Capture> capture(new Capture{order, spare_->Take()},
                                         [spare = spare_](Capture* last) {
                                           spare->Put(std::move(last->copy));
                                           delete last;
                                         });
  memory_.Copy(order.stripe, order.stripes, &capture->copy, &copied_);
  const uint64_t digest = order.digest ? memory_.Hash() : 0;
  MUSTER_FAILPOINT("group.after-capture");
  {
    MutexLock lock(&mutex_);
    capture_ = capture;
    room_ = std::max<uint64_t>(room_, capture->copy.bytes().size());
  }
  options_.desk->Tell([&](DeskContents& desk) {
    desk.core->OnCaptured({order.stripe, capture->copy.bytes().size(), capture->copy.crc(), ""},
                          digest);
  });
  StoreCapture(capture);
}

void MemberCopies::TakeDigest() {
  const uint64_t digest = memory_.Hash();
  options_.desk->Tell([&](DeskContents& desk) { desk.core->OnDigest(digest); });
}

void MemberCopies::StoreCapture(const std::shared_ptr<const Capture>& capture) {
  const sdk::CaptureOrder& order = capture->order;
  if (order.object_prefix.empty()) return storer_->Drop();
  std::string object = fmt::format("{}{}", order.object_prefix, order.stripe);
  storer_->Store(object, {capture, capture->copy.bytes()},
                 [desk = options_.desk, object, label = order.label](const absl::Status& stored) {
                   return desk->Tell([&](DeskContents& on) {
                     if (stored.ok()) {
                       on.core->OnStored(label, object);
                     } else {
                       on.core->OnNotStored(std::string(Message(stored)));
                     }
                     return on.core->view().capture.has_value();
                   });
                 });
}

absl::StatusOr<collectives::LentBytes> MemberCopies::Stripe(StateLabel label, uint32_t stripe) {
  MutexLock lock(&mutex_);
  if (capture_ != nullptr && capture_->order.label == label && capture_->order.stripe == stripe) {
    return collectives::LentBytes{capture_, capture_->copy.bytes()};
  }
  return absl::NotFoundError("this member does not hold that piece of the state");
}

absl::StatusOr<collectives::LentBytes> MemberCopies::KeptSum(LineageNumber lineage, StepNumber step,
                                                             uint32_t block) {
  return options_.desk->Look([&](DeskContents& desk) -> absl::StatusOr<collectives::LentBytes> {
    if (!desk.core.has_value()) return absl::NotFoundError("this process has just begun");
    auto kept = desk.kept.Find({lineage, step}, block, desk.gradients->blocks()->size());
    // The learner tries again. That nobody keeps the sum would cost it its state.
    if (!kept.ok() && desk.core->WillApply(lineage, step)) {
      return absl::FailedPreconditionError("this member has not applied the step yet");
    }
    return kept;
  });
}

// ---- transfers ----

void MemberCopies::Transfer(const sdk::GroupTransfer& transfer) {
  const bool copies = transfer.kind == sdk::GroupTransfer::Kind::kCopyState;
  if (copies) options_.desk->Tell([](DeskContents& desk) { desk.state_copied = true; });
  absl::Status status;
  UnreadableState unreadable;
  std::shared_ptr<StepTotals> sums;
  if (copies) {
    status = CopyState(transfer.source, &unreadable);
    copy_failed_ = !status.ok();
  } else {
    absl::StatusOr<std::shared_ptr<StepTotals>> fetched = FetchSums(transfer);
    status = fetched.status();
    if (fetched.ok()) sums = *std::move(fetched);
  }
  options_.desk->Tell([&](DeskContents& desk) {
    const TimePoint now = options_.desk->Now();
    sdk::MemberCore& core = *desk.core;
    if (sums != nullptr) {
      desk.fetched = sums;
      return core.OnSumFetched(transfer.step);
    }
    if (status.ok()) return core.OnStateCopied(transfer.source.label);
    if (unreadable.pieces > 0) {
      desk.trouble = unreadable.error;
      return core.OnStateUnreadable(std::move(unreadable), now);
    }
    if (!copies && absl::IsNotFound(status)) return core.OnSumMissing(transfer.step);
    if (absl::IsFailedPrecondition(status)) return core.OnSumLater(now);
    if (!absl::IsAborted(status)) desk.trouble = Message(status);
    core.OnTransferFailed(now);
  });
}

bool MemberCopies::Wanted() {
  MutexLock lock(&mutex_);
  return !stopping_ && !stop_transfer_;
}

collectives::StateClient::Done MemberCopies::Counted(Fetches* fetches) {
  {
    MutexLock lock(&mutex_);
    ++fetches->pending;
  }
  return [this, fetches](const absl::Status& status) {
    MutexLock lock(&mutex_);
    --fetches->pending;
    if (fetches->failed.ok()) fetches->failed = status;
    changed_.SignalAll();
  };
}

absl::Status MemberCopies::AwaitFetches(Fetches* fetches, std::optional<TimePoint> limit) {
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    bool late = false;
    while (fetches->pending > 0 && fetches->failed.ok() && !stopping_ && !stop_transfer_ && !late) {
      if (!limit.has_value()) {
        changed_.Wait(&mutex_);
        continue;
      }
      const TimePoint now = options_.desk->Now();
      late = now >= *limit;
      if (!late) changed_.WaitFor(&mutex_, *limit - now);
    }
    status = fetches->failed;
    if (status.ok() && fetches->pending > 0) {
      status = late ? absl::UnavailableError("a member does not answer")
                    : absl::AbortedError("the transfer is not wanted any more");
    }
  }
  // Waits for callbacks, which take the mutex.
  fetches->clients.clear();
  return status;
}

/// `soon`: the answer is small, so a member from which it does not come is given up.
absl::Status MemberCopies::AwaitSum(Fetches* fetches, const GroupMember& holder, bool soon) {
  std::optional<TimePoint> limit;
  if (soon) limit = options_.desk->Now() + kAnswerLimit;
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

absl::Status MemberCopies::CopyState(const StateSource& source, UnreadableState* unreadable) {
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

void MemberCopies::FetchStripes(const StateSource& source, Fetches* fetches) {
  const auto count = static_cast<uint32_t>(source.stripes.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (source.holders[i].worker.empty()) continue;
    std::unique_ptr<collectives::StateClient>& client = fetches->clients.emplace_back(
        collectives::StateClient::Start({.holder = source.holders[i], .listener = listener_}));
    uint64_t offset = 0;
    for (const std::span<std::byte> piece : memory_.Pieces(i, count, kPieceBytes)) {
      client->FetchStripe(source.label, i, offset, piece, Counted(fetches));
      offset += piece.size();
    }
  }
}

/// A piece that cannot be read does not keep it from the others: those that are there are not read
/// again by the next try.
absl::Status MemberCopies::ReadStripes(const StateSource& source, UnreadableState* unreadable) {
  const auto count = static_cast<uint32_t>(source.stripes.size());
  absl::Status first;
  const auto moved = [this](size_t) {
    moved_.fetch_add(1, std::memory_order_relaxed);
    return Wanted() ? absl::OkStatus() : absl::AbortedError("the transfer is not wanted any more");
  };
  for (uint32_t i = 0; i < count; ++i) {
    const StateStripe& stripe = source.stripes[i];
    if (!source.holders[i].worker.empty()) continue;
    if (copy_failed_ && memory_.StripeDigest(i, count) == stripe.crc) continue;
    const absl::Status read =
        LoadStripe(options_.store.get(), stripe, memory_.Pieces(i, count, kPieceBytes), moved);
    if (absl::IsAborted(read)) return read;
    if (read.ok() || ++unreadable->pieces > 1) continue;
    unreadable->error = Message(read);
    first = read;
  }
  return first;
}

absl::StatusOr<std::shared_ptr<StepTotals>> MemberCopies::FetchSums(
    const sdk::GroupTransfer& transfer) {
  absl::Status other_trouble;
  for (const GroupMember& holder : transfer.holders) {
    absl::StatusOr<std::shared_ptr<StepTotals>> sums = FetchSumsFrom(transfer, holder);
    if (sums.ok() || absl::IsAborted(sums.status())) return sums;
    // One that will have it counts more than one that does not answer.
    if (absl::IsNotFound(sums.status()) || absl::IsFailedPrecondition(other_trouble)) continue;
    other_trouble = sums.status();
  }
  MUSTER_RETURN_IF_ERROR(other_trouble);
  return absl::NotFoundError(
      fmt::format("no member keeps the sums of step {}", transfer.step.value()));
}

absl::StatusOr<std::shared_ptr<StepTotals>> MemberCopies::FetchSumsFrom(
    const sdk::GroupTransfer& transfer, const GroupMember& holder) {
  Fetches asked, fetched;
  StepFacts facts;
  {
    MutexLock lock(&mutex_);
    has_sources_ = true;
  }
  const auto blocks = static_cast<uint32_t>(layout_->blocks()->size());
  collectives::StateClient* const client = sum_sources_.To(holder, listener_);
  client->FetchSum(transfer.lineage, transfer.step, blocks, facts.bytes(), Counted(&asked));
  MUSTER_RETURN_IF_ERROR(AwaitSum(&asked, holder, /*soon=*/true));
  auto sums = std::make_shared<StepTotals>();
  if (facts.evaluate == 0) {
    MUSTER_ASSIGN_OR_RETURN(sums, StepTotals::Create(*layout_));
  }
  sums->after = {transfer.lineage, transfer.step};
  sums->facts = facts;
  if (sums->size() == 0) return sums;
  for (uint32_t block = 0; block < blocks; ++block) {
    client->FetchSum(transfer.lineage, transfer.step, block, sums->encoded(block),
                     Counted(&fetched));
  }
  MUSTER_RETURN_IF_ERROR(AwaitSum(&fetched, holder, /*soon=*/false));
  MUSTER_RETURN_IF_ERROR(sums->Decode(*layout_));
  if (options_.device != nullptr) {
    MUSTER_RETURN_IF_ERROR(sums->CopyToDevice(*layout_, options_.device));
  }
  return sums;
}

}  // namespace muster::internal
