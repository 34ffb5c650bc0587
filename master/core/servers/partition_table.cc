#include "master/core/servers/partition_table.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "master/core/servers/snapshot_turn.h"
#include "sharding/placement.h"

namespace muster {
namespace {

/// True if `next` has the whole present chain, or nothing of it. With a part of the chain, rows of
/// the missing files would be lost.
bool KeepsWholeChain(const Manifest& before, const Manifest& next) {
  const auto kept = std::span(next.files).first(next.files.size() - 1);
  return kept.empty() || std::ranges::equal(kept, before.files);
}

/// True if `next` has the files of the present chain, these and one that the snapshot wrote, or
/// only that one.
bool GoesOnFrom(const Manifest& before, const Manifest& next) {
  if (next.files == before.files) return true;
  return !next.files.empty() && next.files.back().number == next.number &&
         KeepsWholeChain(before, next);
}

/// True if the snapshot may replace the present one: it is newer, and its chain contains that one's
/// rows.
bool MayReplace(const Manifest& before, const Manifest& next) {
  return next.number > before.number && next.cut >= before.cut && GoesOnFrom(before, next);
}

}  // namespace

PartitionTable::PartitionTable(uint32_t partitions, MasterIncarnation incarnation,
                               const DurableState& state, TimePoint now)
    : incarnation_(incarnation), partitions_(partitions) {
  if (state.meta.has_value()) {
    version_ = known_since_ = state.meta->map_version;
    restore_epoch_ = state.meta->restore_epoch;
  }
  for (const auto& [id, record] : state.partitions) {
    MUSTER_CHECK(id.value() < partitions_.size());
    partitions_[id.value()].entry = record.entry;
    partitions_[id.value()].manifest = record.manifest;
  }
  for (Partition& partition : partitions_) partition.last_asked = now;
  IndexPlacements();
}

const std::vector<uint32_t>& PartitionTable::PlacedOn(ServerId server) const {
  static const std::vector<uint32_t> kNone;
  const auto placed = placed_.find(server);
  return placed == placed_.end() ? kNone : placed->second;
}

void PartitionTable::IndexPlacements() {
  placed_.clear();
  for (uint32_t id = 0; id < partitions_.size(); ++id) {
    placed_[partitions_[id].entry.owner].push_back(id);
  }
}

void PartitionTable::Restore(uint32_t id, ServerIncarnation incarnation, Restored* restored) {
  Partition& partition = partitions_[id];
  PartitionEntry& entry = partition.entry;
  entry.owner_incarnation = incarnation;
  // Everything that was confirmed under the former epoch is void.
  const OwnerEpoch before = std::exchange(entry.epoch, entry.epoch.Next());
  MUSTER_CHECK(entry.epoch > before);
  entry.since = entry.epoch;
  entry.copy = OwnerEpoch();
  entry.restored = true;
  MUSTER_CHECK(entry.restored_at < restore_epoch_);
  entry.restored_at = restore_epoch_;
  partition.changed_in = version_;
  partition.reported = OwnerEpoch();
  partition.asked.reset();
  partition.traffic.reset();
  const DoneSeq cut = partition.manifest.cut;
  if (restored->partitions == 0 || cut < restored->replay_after) {
    restored->replay_after = cut;
  }
  // Everything that this partition lacks runs again, even if the others have it.
  MUSTER_CHECK(restored->replay_after <= cut);
  ++restored->partitions;
  dirty_.insert(id);
}

void PartitionTable::BeginChange() {
  if (!told_) return;
  version_ = version_.Next();
  told_ = false;
}

void PartitionTable::EndpointChanged(ServerId server) {
  BeginChange();
  endpoints_changed_in_[server] = version_;
}

bool PartitionTable::KnowsChangesSince(MapVersion version) const {
  return version >= known_since_;
}

std::vector<PartitionId> PartitionTable::ChangedSince(MapVersion version) const {
  std::vector<PartitionId> changed;
  for (uint32_t id = 0; id < partitions_.size(); ++id) {
    if (partitions_[id].changed_in > version) changed.emplace_back(id);
  }
  return changed;
}

bool PartitionTable::EndpointChangedSince(ServerId server, MapVersion version) const {
  const auto changed = endpoints_changed_in_.find(server);
  return changed != endpoints_changed_in_.end() && changed->second > version;
}

PartitionTable::Restored PartitionTable::BeginRun(uint32_t servers) {
  // Nothing is served, and nobody asks: a synchronous group has no weights in partitions.
  if (servers == 0) return {};
  std::vector<ServerId> slots;
  for (uint32_t i = 0; i < servers; ++i) slots.push_back(ServerId(i));
  std::vector<std::optional<ServerId>> current;
  for (const Partition& partition : partitions_) {
    const bool placed = partition.entry.epoch != OwnerEpoch();
    current.push_back(placed ? std::optional(partition.entry.owner) : std::nullopt);
  }
  const std::vector<ServerId> owners =
      Place(current, slots, static_cast<uint32_t>(partitions_.size()));
  MUSTER_CHECK(owners.size() == partitions_.size());
  BeginChange();
  // Addresses were removed, which changes cannot express. So workers with an older map get the
  // whole map.
  known_since_ = version_;
  restore_epoch_ = restore_epoch_.Next();
  Restored restored;
  for (uint32_t id = 0; id < partitions_.size(); ++id) {
    partitions_[id].entry.owner = owners[id];
    Restore(id, ServerIncarnation(), &restored);
  }
  IndexPlacements();
  return restored;
}

PartitionTable::Restored PartitionTable::ServerReplaced(ServerId server,
                                                        ServerIncarnation incarnation) {
  MUSTER_CHECK(incarnation != ServerIncarnation());
  Restored restored;
  EndpointChanged(server);
  for (const uint32_t id : PlacedOn(server)) {
    PartitionEntry& entry = partitions_[id].entry;
    if (entry.owner_incarnation == incarnation) continue;
    if (entry.owner_incarnation == ServerIncarnation()) {
      // No process has served this epoch yet, so no confirmation under it is lost.
      entry.owner_incarnation = incarnation;
      partitions_[id].changed_in = version_;
      dirty_.insert(id);
      continue;
    }
    if (restored.partitions == 0) restore_epoch_ = restore_epoch_.Next();
    Restore(id, incarnation, &restored);
  }
  return restored;
}

PartitionTable::Restored PartitionTable::Missing(ServerId server, ServerIncarnation incarnation,
                                                 const MissingReport& report) {
  Restored restored;
  const uint32_t id = report.partition.value();
  if (id >= partitions_.size() || !OwnedBy(partitions_[id], server, incarnation) ||
      partitions_[id].entry.epoch != report.epoch) {
    return restored;
  }
  BeginChange();
  restore_epoch_ = restore_epoch_.Next();
  Restore(id, incarnation, &restored);
  return restored;
}

bool PartitionTable::Reported(ServerId server, ServerIncarnation incarnation,
                              std::span<const OwnedPartition> owned) {
  std::vector<uint32_t> not_served_before;
  for (const uint32_t id : PlacedOn(server)) {
    Partition& partition = partitions_[id];
    if (!OwnedBy(partition, server, incarnation)) continue;
    if (partition.reported != partition.entry.epoch) not_served_before.push_back(id);
    partition.reported = OwnerEpoch();
  }
  for (const OwnedPartition& one : owned) {
    if (one.partition.value() >= partitions_.size()) continue;
    Partition& partition = partitions_[one.partition.value()];
    if (!OwnedBy(partition, server, incarnation)) continue;
    partition.reported = one.epoch;
    partition.known_accepted = one.accepted;
  }
  return std::ranges::any_of(not_served_before, [&](uint32_t id) {
    const Partition& partition = partitions_[id];
    return partition.reported == partition.entry.epoch && partition.entry.restored;
  });
}

void PartitionTable::TakeTraffic(ServerId server, ServerIncarnation incarnation,
                                 std::span<const PartitionTraffic> traffic) {
  for (const PartitionTraffic& one : traffic) {
    if (one.partition.value() >= partitions_.size()) continue;
    Partition& partition = partitions_[one.partition.value()];
    if (OwnedBy(partition, server, incarnation)) partition.traffic = one;
  }
}

bool PartitionTable::IsFromOwner(const Partition& partition, ServerId server,
                                 ServerIncarnation incarnation, OwnerEpoch epoch) const {
  return incarnation != ServerIncarnation() && OwnedBy(partition, server, incarnation) &&
         partition.entry.epoch == epoch;
}

bool PartitionTable::Accept(ServerId server, ServerIncarnation incarnation,
                            const SnapshotReport& report, const Acceptance& at,
                            std::vector<std::string>* unused) {
  const uint32_t id = report.partition.value();
  if (id >= partitions_.size()) return false;
  Partition& partition = partitions_[id];
  const Manifest& next = report.manifest;
  // Rule 3.5.
  if (!IsFromOwner(partition, server, incarnation, report.epoch) ||
      !MayReplace(partition.manifest, next) || next.number.incarnation() != incarnation_ ||
      next.number.count() > snapshot_count_ || next.cut > at.done_seq) {
    return false;
  }
  if (partition.asked.has_value() && partition.asked->number == next.number) {
    if (partition.asked->cut != next.cut) return false;
    partition.asked.reset();
  }
  std::set<std::string> kept;
  for (const SnapshotFile& file : next.files) kept.insert(file.name);
  for (const SnapshotFile& file : partition.manifest.files) {
    if (!kept.contains(file.name)) unused->push_back(file.name);
  }
  const DoneSeq before = partition.manifest.cut;
  MUSTER_CHECK(before <= next.cut);
  if (at_min_cut_ > 0 && before == min_cut_ && next.cut > min_cut_) --at_min_cut_;
  partition.manifest = next;
  partition.accepted_at = at.now;
  dirty_.insert(id);
  return true;
}

void PartitionTable::AskSnapshots(ServerId server, ServerIncarnation incarnation,
                                  const Schedule& schedule) {
  const std::vector<uint32_t>& placed = PlacedOn(server);
  for (size_t i = 0; i < placed.size(); ++i) {
    Partition& partition = partitions_[placed[i]];
    if (!OwnedBy(partition, server, incarnation) || partition.reported != partition.entry.epoch) {
      continue;
    }
    if (partition.asked.has_value()) {
      if (schedule.now - partition.asked->at < schedule.timeout) continue;
      partition.asked.reset();
    } else {
      const SnapshotTurn turn(server.value(), placed_.rbegin()->first.value() + 1, i,
                              placed.size());
      const bool due = turn.Came(partition.last_asked, schedule.now, schedule.interval);
      const bool behind = partition.manifest.cut < schedule.done_seq;
      const bool hurry = schedule.urgent || partition.manifest.cut < schedule.urgent_cut;
      if (!(behind && (due || hurry)) && !(due && schedule.training)) continue;
    }
    MUSTER_CHECK(partition.manifest.cut <= schedule.done_seq);
    MUSTER_CHECK(partition.manifest.number < SnapshotNumber(incarnation_, snapshot_count_ + 1));
    // Rule 3.4: the cut is the newest journaled done_seq now.
    partition.last_asked = schedule.now;
    partition.asked =
        Asked{SnapshotNumber(incarnation_, ++snapshot_count_), schedule.done_seq, schedule.now};
  }
}

void PartitionTable::FillCommands(ServerId server, ServerIncarnation incarnation,
                                  ServerExchangeReply* reply) const {
  for (const uint32_t i : PlacedOn(server)) {
    const Partition& partition = partitions_[i];
    if (!OwnedBy(partition, server, incarnation)) continue;
    const PartitionEntry& entry = partition.entry;
    const PartitionId id(i);
    if (partition.reported != entry.epoch) {
      reply->owns.push_back(
          {id, entry.epoch, entry.since, entry.copy, entry.restored, partition.manifest});
      continue;
    }
    if (partition.asked.has_value()) {
      reply->snapshots.push_back({id, entry.epoch, partition.asked->cut, partition.asked->number});
    }
    if (partition.known_accepted != partition.manifest.number) {
      reply->accepted.push_back({id, partition.manifest.number});
    }
  }
}

DoneSeq PartitionTable::MinCut() {
  if (at_min_cut_ > 0) return min_cut_;
  const DoneSeq before = std::exchange(min_cut_, partitions_.front().manifest.cut);
  for (const Partition& partition : partitions_) {
    const DoneSeq cut = partition.manifest.cut;
    if (cut < min_cut_) {
      min_cut_ = cut;
      at_min_cut_ = 0;
    }
    if (cut == min_cut_) ++at_min_cut_;
  }
  MUSTER_CHECK(at_min_cut_ > 0 && at_min_cut_ <= partitions_.size());
  MUSTER_CHECK(before <= min_cut_);
  return min_cut_;
}

bool PartitionTable::AllHold(DoneSeq cut) const {
  return std::ranges::all_of(
      partitions_, [&](const Partition& partition) { return partition.manifest.cut >= cut; });
}

std::vector<PartitionEntry> PartitionTable::Entries() const {
  std::vector<PartitionEntry> entries;
  entries.reserve(partitions_.size());
  for (const Partition& partition : partitions_) entries.push_back(partition.entry);
  return entries;
}

PartitionTable::Load PartitionTable::LoadOf(ServerId server) const {
  Load load;
  for (const uint32_t id : PlacedOn(server)) {
    const Partition& partition = partitions_[id];
    ++load.owned;
    if (partition.entry.owner_incarnation != ServerIncarnation() &&
        partition.reported == partition.entry.epoch) {
      ++load.serving;
    }
  }
  return load;
}

uint32_t PartitionTable::CountBehind(ServerId server, ServerIncarnation incarnation,
                                     DoneSeq cut) const {
  return static_cast<uint32_t>(std::ranges::count_if(PlacedOn(server), [&](uint32_t id) {
    const Partition& partition = partitions_[id];
    return OwnedBy(partition, server, incarnation) && partition.manifest.cut < cut;
  }));
}

PartitionTable::Seen PartitionTable::SeenOf(PartitionId id) const {
  const Partition& partition = partitions_[id.value()];
  return {partition.entry.owner_incarnation != ServerIncarnation() &&
              partition.reported == partition.entry.epoch,
          partition.traffic, partition.accepted_at};
}

void PartitionTable::Collect(std::vector<Mutation>* mutations) {
  for (uint32_t id : dirty_) {
    mutations->push_back(
        PartitionRecord{PartitionId(id), partitions_[id].entry, partitions_[id].manifest});
  }
  dirty_.clear();
}

}  // namespace muster
