// The code of planted bugs and weakenings that a condition alone cannot express.
#include <algorithm>

#include "master/core/servers/partition_table.h"
#include "master/core/workers/leasing.h"
#include "ps/core/lane_snapshots.h"
#include "ps/core/pushes.h"
#include "tests/sim/planted/planted_bug.h"
#include "worker_sdk/core/part_sender.h"

namespace muster {

/// min_cut_ is the largest cut.
void PartitionTable::CommitAtMaxCut() {
  for (const Partition& partition : partitions_) {
    min_cut_ = std::max(min_cut_, partition.manifest.cut);
  }
}

/// revived-lease: a lease of this master that has ended continues.
bool Leasing::IsRevivable(const HeldLease& held) const {
  return newest_grant_.Of(held.shard) == held.token &&
         books_->ledger.queue().StateOf(held.shard) == ShardState::kTodo;
}

/// busy-grace: the floor, or lower: at rest in the grace period, later it moves on in steps.
LeaseToken Leasing::LoweredFloor() const {
  constexpr uint64_t kStep = 32;
  const LeaseToken floor = Floor();
  if (grace_.on()) return LeaseToken(MasterIncarnation(books_->incarnation.value() - 1), 1);
  if (table_.train_count() == 0) return floor;
  return LeaseToken(floor.incarnation(), (floor.count() - 1) / kStep * kStep + 1);
}

namespace ps {

/// late-base: the rows of an accepted delta are clean, and its file is in no chain any more.
bool LaneSnapshots::LosesFileName(Slot* slot, Standing* of, SnapshotNumber accepted) {
  if (of->outstanding->kind != SnapshotKind::kDelta || accepted.count() % 3 != 0) return false;
  slot->partition->Accepted(accepted);
  of->outstanding.reset();
  return true;
}

/// part-not-atom: every table of part_ but the last is a part of its own, and is applied.
bool Pushes::AppliesTablesAlone(Slot* slot) {
  if (part_.groups.empty()) return false;
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
      return IsPlanted("stale-is-ok");
    case wire::PartCode::kWrongOwner:
      return IsPlanted("wrong-owner-is-ok");
    case wire::PartCode::kRetry:
      return IsPlanted("retry-is-ok");
    case wire::PartCode::kMissing:
      return IsPlanted("missing-is-ok");
    default:
      return false;
  }
}

}  // namespace sdk
}  // namespace muster
