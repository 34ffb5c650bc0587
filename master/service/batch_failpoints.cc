#include "master/service/batch_failpoints.h"

#include <utility>
#include <variant>

#include "base/failpoint.h"

#if MUSTER_WITH_FAILPOINTS

namespace muster {

BatchFailpoints::BatchFailpoints(const MasterCore& core)
    : core_(core), restore_epoch_(core.partitions().restore_epoch()) {
  for (uint32_t p = 0; p < core.partitions().size(); ++p) {
    const PartitionId id(p);
    const PartitionEntry& entry = core.partitions().entry(id);
    partitions_[id] = {core.partitions().manifest(id).number, entry.epoch, entry.owner_incarnation};
  }
}

void BatchFailpoints::Look(const Mutation& mutation) {
  if (const auto* done = std::get_if<DoneRecord>(&mutation)) {
    (core_.ledger().IsEvaluate(done->done.shard) ? says_.evaluate : says_.done) = true;
  }
  says_.commit |= std::holds_alternative<EpochRecord>(mutation);
  says_.table |= std::holds_alternative<TableSpec>(mutation);
  says_.node |= std::holds_alternative<NodeRecord>(mutation);
  if (const auto* failure = std::get_if<FailureRecord>(&mutation)) {
    says_.failure |= failure->failures > 0;
  }
  if (const auto* meta = std::get_if<MetaRecord>(&mutation)) {
    says_.restore |= std::exchange(restore_epoch_, meta->restore_epoch) < meta->restore_epoch;
  }
  if (const auto* record = std::get_if<PartitionRecord>(&mutation)) {
    Known& known = partitions_[record->partition];
    const PartitionEntry& entry = record->entry;
    says_.manifest |= known.number != record->manifest.number;
    says_.owner |= known.epoch != entry.epoch || known.owner != entry.owner_incarnation;
    known = {record->manifest.number, entry.epoch, entry.owner_incarnation};
  }
}

void BatchFailpoints::PassBeforeSync(const std::vector<Mutation>& mutations) {
  says_ = {};
  for (const Mutation& mutation : mutations) Look(mutation);
  if (says_.done) MUSTER_FAILPOINT("done.before-sync");
  if (says_.commit) MUSTER_FAILPOINT("commit.before-sync");
  if (says_.evaluate) MUSTER_FAILPOINT("evaluate.before-sync");
  if (says_.manifest) MUSTER_FAILPOINT("manifest.before-sync");
  if (says_.owner) MUSTER_FAILPOINT("owner-epoch.before-sync");
  if (says_.restore) MUSTER_FAILPOINT("restore.before-sync");
  if (says_.failure) MUSTER_FAILPOINT("failure.before-sync");
  if (says_.table) MUSTER_FAILPOINT("table.before-sync");
  if (says_.node) MUSTER_FAILPOINT("node.before-sync");
}

void BatchFailpoints::PassAfterSync() const {
  if (says_.done) MUSTER_FAILPOINT("done.after-sync");
  if (says_.commit) MUSTER_FAILPOINT("commit.after-sync");
  if (says_.evaluate) MUSTER_FAILPOINT("evaluate.after-sync");
  if (says_.manifest) MUSTER_FAILPOINT("manifest.after-sync");
  if (says_.owner) MUSTER_FAILPOINT("owner-epoch.after-sync");
  if (says_.restore) MUSTER_FAILPOINT("restore.after-sync");
  if (says_.failure) MUSTER_FAILPOINT("failure.after-sync");
  if (says_.table) MUSTER_FAILPOINT("table.after-sync");
  if (says_.node) MUSTER_FAILPOINT("node.after-sync");
}

}  // namespace muster

#endif
