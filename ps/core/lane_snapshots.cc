#include "ps/core/lane_snapshots.h"

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "ps/snapshot/chain.h"

namespace muster::ps {

LaneSnapshots::LaneSnapshots(LaneState* lane, std::chrono::milliseconds retry_pause)
    : lane_(lane), retry_pause_(retry_pause), partitions_(lane->slots().size()) {}

void LaneSnapshots::Begin(const Slot& slot, const Manifest& manifest) {
  Standing& of = Of(slot);
  MUSTER_CHECK(!of.wanted.has_value() && !of.outstanding.has_value());
  of = {.accepted = manifest};
}

void LaneSnapshots::Drop(Slot* slot) {
  if (copying_.has_value() && copying_->partition == slot->id) {
    slot->partition->DropImage();
    copying_.reset();
  }
  Standing& of = Of(*slot);
  of.outstanding.reset();
  ClearWanted(*slot);
  of.error.clear();
}

void LaneSnapshots::SetWanted(const Slot& slot, const SnapshotCommand& command) {
  Standing& of = Of(slot);
  if (!of.wanted.has_value()) {
    of.place = ++places_;
    wanted_.emplace(of.place, slot.id);
  }
  of.wanted = command;
}

void LaneSnapshots::ClearWanted(const Slot& slot) {
  Standing& of = Of(slot);
  if (!std::exchange(of.wanted, std::nullopt).has_value()) return;
  MUSTER_CHECK(wanted_.erase(of.place) == 1);
}

/// An acceptance counts only for the snapshot that it names. Another snapshot may lack rows of this
/// one.
bool LaneSnapshots::IsOutstanding(const Standing& of, SnapshotNumber number) {
  return of.outstanding.has_value() && of.outstanding->written && of.outstanding->number == number;
}

void LaneSnapshots::Accept(const AcceptedSnapshot& accepted) {
  Slot* const slot = lane_->Find(accepted.partition);
  if (slot == nullptr || slot->partition == nullptr) return;
  Standing& of = Of(*slot);
  if (accepted.number == of.accepted.number) return;
  if (!IsOutstanding(of, accepted.number)) {
    // The files of the known chain may be deleted, and a delta must not continue a chain that no
    // longer exists.
    of.force_base = true;
    return;
  }
  const Outstanding& outstanding = *of.outstanding;
  MUSTER_CHECK(outstanding.number == accepted.number);
  MUSTER_CHECK(outstanding.chain.number == outstanding.number);
  MUSTER_CHECK(outstanding.number > of.accepted.number);
  // The rows become clean only now, because the file might not have been written, or might have
  // been refused. This snapshot is the newest image, and was not accepted before.
  // Rule 3.5.
  if (outstanding.with_file) MUSTER_CHECK(slot->partition->Accepted(outstanding.number));
  if (outstanding.chain.files.size() == 1) of.force_base = false;
  of.accepted = outstanding.chain;
  of.outstanding.reset();
  if (of.wanted.has_value() && of.wanted->number <= accepted.number) ClearWanted(*slot);
}

void LaneSnapshots::Want(const SnapshotCommand& command, uint64_t sequence) {
  Slot* const slot = lane_->Find(command.partition);
  if (slot == nullptr || slot->partition == nullptr || slot->epoch != command.epoch) return;
  Standing& of = Of(*slot);
  if (command.number <= of.accepted.number) return;
  if (of.wanted.has_value() && command.number < of.wanted->number) return;
  if (of.outstanding.has_value()) {
    const Outstanding& outstanding = *of.outstanding;
    if (command.number <= outstanding.number) return;
    // If the master got the report of the outstanding snapshot and still asks for a newer one, the
    // outstanding one will never be accepted. Before the master gets the report, it may still be
    // accepted, so the new one waits.
    const bool had_report =
        outstanding.first_reported != 0 && outstanding.first_reported <= sequence;
    if (outstanding.written && had_report) of.outstanding.reset();
  }
  SetWanted(*slot, command);
}

bool LaneSnapshots::BeginImage(TimePoint now) {
  if (now < not_before_ || copying_.has_value()) return false;
  for (auto it = wanted_.begin(); it != wanted_.end();) {
    Slot* const slot = lane_->Find(it->second);
    MUSTER_CHECK(slot != nullptr && slot->partition != nullptr);
    Standing& of = Of(*slot);
    MUSTER_CHECK(of.wanted.has_value() && of.place == it->first);
    const bool waits = slot->partition->holds_half();
    if (waits) image_waits_ = true;
    if (of.outstanding.has_value() || waits) {
      ++it;
      continue;
    }
    const SnapshotCommand command = *std::exchange(of.wanted, std::nullopt);
    it = wanted_.erase(it);
    if (BeginSnapshot(slot, command)) return true;
  }
  return false;
}

bool LaneSnapshots::BeginSnapshot(Slot* slot, const SnapshotCommand& command) {
  Standing& of = Of(*slot);
  MUSTER_CHECK(!of.outstanding.has_value());
  Outstanding& outstanding = of.outstanding.emplace(Outstanding{});
  MUSTER_CHECK(slot->epoch == command.epoch && command.number > of.accepted.number);
  outstanding.number = command.number;
  outstanding.cut = command.cut;
  if (slot->partition->UnchangedSinceAccepted() && !of.force_base) {
    MUSTER_CHECK(slot->partition->sizes().dirty_rows == 0);
    outstanding.written = true;
    outstanding.chain = {command.number, command.cut, of.accepted.files};
    lane_->news = true;
    return false;
  }
  outstanding.with_file = true;
  outstanding.kind = of.force_base ? SnapshotKind::kBase : NextSnapshotKind(of.accepted);
  slot->partition->BeginImage(command.number, outstanding.kind);
  copying_ = SnapshotJob{command.partition, command.epoch, command.number, {}};
  return true;
}

LaneSnapshots::Copy LaneSnapshots::CopyImage(WorkLimit* work, SnapshotJob* job) {
  if (!copying_.has_value()) return Copy::kGone;
  Slot* const slot = lane_->Find(copying_->partition);
  MUSTER_CHECK(slot != nullptr && slot->partition != nullptr);
  MUSTER_CHECK(slot->epoch == copying_->epoch && Of(*slot).outstanding.has_value());
  if (!slot->partition->CopyImage(work)) return Copy::kMore;
  *job = *std::exchange(copying_, std::nullopt);
  job->image = slot->partition->TakeImage();
  return Copy::kDone;
}

void LaneSnapshots::OnPartWhole() {
  if (!std::exchange(image_waits_, false)) return;
  image_ready_ = true;
}

void LaneSnapshots::Written(PartitionId partition, SnapshotNumber number,
                            absl::StatusOr<SnapshotFile> file, TimePoint now) {
  if (file.ok()) {
    ++lane_->counters.snapshots;
    lane_->counters.snapshot_bytes += file->bytes;
  } else {
    Log(LogLevel::kError, "{}", Message(file.status()));
    not_before_ = now + retry_pause_;
    lane_->news = true;
  }
  Slot* const slot = lane_->Find(partition);
  if (slot == nullptr) return;
  Standing& of = Of(*slot);
  if (!of.outstanding.has_value() || of.outstanding->number != number) {
    return;  // the epoch of this snapshot is over
  }
  Outstanding& outstanding = *of.outstanding;
  if (file.ok()) {
    of.error.clear();
    outstanding.written = true;
    outstanding.chain =
        ExtendChain(of.accepted, outstanding.kind, outstanding.number, outstanding.cut, *file);
    lane_->news = true;
    return;
  }
  // The rows of the failed file still have to be written.
  MUSTER_CHECK(outstanding.kind == SnapshotKind::kBase ||
               !slot->partition->UnchangedSinceAccepted());
  of.error = std::string(Message(file.status()));
  if (!of.wanted.has_value()) {
    SetWanted(*slot, {partition, slot->epoch, outstanding.cut, outstanding.number});
  }
  of.outstanding.reset();
}

void LaneSnapshots::Report(const Slot& slot, uint64_t sequence, LaneReport* report) {
  Standing& of = Of(slot);
  report->owned.push_back({slot.id, slot.epoch, of.accepted.number});
  if (!of.outstanding.has_value() || !of.outstanding->written) return;
  Outstanding& outstanding = *of.outstanding;
  if (outstanding.first_reported == 0) outstanding.first_reported = sequence;
  report->snapshots.push_back({slot.id, slot.epoch, outstanding.chain});
}

}  // namespace muster::ps
