// The code of planted bugs and weakenings that a condition alone cannot express.
#include <algorithm>

#include "base/planted_bug.h"
#include "master/core/servers/partition_table.h"
#include "master/core/workers/leasing.h"
#include "ps/core/lane_snapshots.h"
#include "ps/core/pushes.h"
#include "ps/engine/table.h"
#include "worker_sdk/core/part_sender.h"

namespace muster {

/// min_cut_ is the largest cut.
bool PartitionTable::CommitAtMaxCut() {
  if (!MUSTER_PLANTED(kCommitAtMaxCut)) return false;
  for (const Partition& partition : partitions_) {
    min_cut_ = std::max(min_cut_, partition.manifest.cut);
  }
  return true;
}

/// busy-grace: the floor, or lower: at rest in the grace period, later it moves on in steps.
bool Leasing::LowersFloor(std::optional<LeaseToken>* floor) const {
  // A group leases nothing, and its floor is that of its steps.
  if (!MUSTER_WEAKENED(kBusyGrace) || books_->options.group.has_value()) return false;
  constexpr uint64_t kStep = 32;
  if (grace_.on()) {
    *floor = LeaseToken(MasterIncarnation(books_->incarnation.value() - 1), 1);
  } else if (table_.train_count() > 0) {
    *floor = LeaseToken((*floor)->incarnation(), ((*floor)->count() - 1) / kStep * kStep + 1);
  }
  return true;
}

namespace ps {

/// The row that is pulled is there from now on.
bool Table::PullCreates(uint64_t key, std::span<const float> values) const {
  if (!MUSTER_PLANTED(kPullCreates)) return false;
  const_cast<Table*>(this)->SetValues(key, values);
  return true;
}

bool Table::RowNotInitialised(std::span<float> values) const {
  if (!MUSTER_PLANTED(kRowNotInitialised)) return false;
  std::ranges::fill(values, 0.0f);
  return true;
}

/// late-base: the rows of an accepted delta are clean, and its file is in no chain any more.
bool LaneSnapshots::LosesFileName(Slot* slot, Standing* of, SnapshotNumber accepted) {
  if (!MUSTER_WEAKENED(kLateBase) || of->outstanding->kind != SnapshotKind::kDelta ||
      accepted.count() % 3 != 0) {
    return false;
  }
  slot->partition->Accepted(accepted);
  of->outstanding.reset();
  return true;
}

/// part-not-atom: every table of part_ but the last is a part of its own, and is applied.
bool Pushes::AppliesTablesAlone(Slot* slot) {
  if (!MUSTER_PLANTED(kPartNotAtom) || part_.groups.empty()) return false;
  const std::vector<PartGroup> groups = part_.groups;
  for (size_t i = 0; i + 1 < groups.size(); ++i) {
    part_.groups = {groups[i]};
    if (!slot->partition->holds_half()) slot->partition->Apply(part_);
  }
  part_.groups = groups;
  return true;
}

}  // namespace ps
namespace sdk {

bool PartSender::OkByMistake(wire::PartCode code) {
  switch (code) {
    case wire::PartCode::kStaleLease:
      return MUSTER_PLANTED(kStaleIsOk);
    case wire::PartCode::kWrongOwner:
      return MUSTER_PLANTED(kWrongOwnerIsOk);
    case wire::PartCode::kRetry:
      return MUSTER_PLANTED(kRetryIsOk);
    case wire::PartCode::kMissing:
      return MUSTER_PLANTED(kMissingIsOk);
    default:
      return false;
  }
}

}  // namespace sdk
}  // namespace muster
