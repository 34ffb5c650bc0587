#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "master/core/durable_state.h"
#include "proto/messages/control.h"
#include "proto/messages/partition_map.h"

namespace muster {

/// The partition map, the manifest, and the commands that follow from them (docs/protocol.md,
/// sections 3 and 5, without moves). A partition whose owner incarnation is 0 waits for a process
/// in its server's slot. Pure; not thread-safe.
class PartitionTable {
 public:
  /// Partitions that came back from an older state in one step.
  struct Restored {
    uint32_t partitions = 0;
    /// DONE shards after this must run again. Meaningful when partitions > 0.
    DoneSeq replay_after;
  };

  PartitionTable(uint32_t partitions, MasterIncarnation incarnation, const DurableState& state,
                 TimePoint now);

  /// Every process of older runs is dead. Places the partitions on servers 0..servers-1, where they
  /// wait for a process that restores them from the manifest.
  Restored BeginRun(uint32_t servers);
  /// A new process has the slot `server`. It takes the partitions that wait for it, and restores
  /// those of the process before it.
  Restored ServerReplaced(ServerId server, ServerIncarnation incarnation);
  /// The owner has lost its state. Nothing happens unless it is the current owner at the current
  /// epoch.
  Restored Missing(ServerId server, ServerIncarnation incarnation, const MissingReport& report);

  /// Takes the server's whole list of its partitions. Returns true if it now serves a restored
  /// partition that it did not serve before (which must be told again what to forget).
  bool Reported(ServerId server, ServerIncarnation incarnation,
                std::span<const OwnedPartition> owned);
  /// Takes the traffic that the server reports for its own partitions, and ignores the rest.
  void TakeTraffic(ServerId server, ServerIncarnation incarnation,
                   std::span<const PartitionTraffic> traffic);
  /// When a snapshot is accepted, and the newest done_seq then.
  struct Acceptance {
    DoneSeq done_seq;
    TimePoint now;
  };
  /// Accepts the snapshot if the rules allow it: it comes from the current owner at the current
  /// epoch, is newer than the manifest's, was requested by this master incarnation, has a cut that
  /// exists, and its chain continues the manifest's or begins with a new base. Appends the files
  /// that are no longer needed to `unused`.
  bool Accept(ServerId server, ServerIncarnation incarnation, const SnapshotReport& report,
              const Acceptance& at, std::vector<std::string>* unused);
  struct Schedule {
    DoneSeq done_seq;
    TimePoint now;
    std::chrono::milliseconds interval{0};
    std::chrono::milliseconds timeout{0};
    /// Requests snapshots of every partition whose cut is behind, at once, not in turn.
    bool urgent = false;
    /// As above, for partitions whose cut is below this.
    DoneSeq urgent_cut{};
    /// Shards are being trained: requests snapshots of the partitions whose turn it is, to keep
    /// what was pushed since, even if no shard is DONE.
    bool training = false;
  };
  /// Requests snapshots of the server's partitions whose turn (SnapshotTurn) came since the last
  /// request. Each partition has at most one outstanding request.
  void AskSnapshots(ServerId server, ServerIncarnation incarnation, const Schedule& schedule);
  /// Fills owns, snapshots and accepted of a reply to the server, by what it reported last.
  void FillCommands(ServerId server, ServerIncarnation incarnation,
                    ServerExchangeReply* reply) const;

  /// F: every DONE shard up to this is in the manifest's snapshot of every partition.
  DoneSeq MinCut();
  /// True if every partition's snapshot contains every shard DONE up to `cut`.
  bool AllHold(DoneSeq cut) const;
  MapVersion version() const { return version_; }
  RestoreEpoch restore_epoch() const { return restore_epoch_; }
  /// Something else of the server in the workers' map changed (an address).
  void EndpointChanged(ServerId server);
  /// A worker is told the current version, so the next change makes a new version.
  void Told() { told_ = true; }
  /// True if the changes since that version are known. Their versions are not journaled, so after a
  /// restart all earlier changes count as older.
  bool KnowsChangesSince(MapVersion version) const;
  /// Partitions whose entry changed after that version, in ascending order.
  std::vector<PartitionId> ChangedSince(MapVersion version) const;
  bool EndpointChangedSince(ServerId server, MapVersion version) const;
  size_t size() const { return partitions_.size(); }
  const PartitionEntry& entry(PartitionId id) const { return partitions_[id.value()].entry; }
  const Manifest& manifest(PartitionId id) const { return partitions_[id.value()].manifest; }
  std::vector<PartitionEntry> Entries() const;
  struct Load {
    uint32_t owned = 0;
    uint32_t serving = 0;
  };
  Load LoadOf(ServerId server) const;
  /// Partitions of the server's process whose snapshot does not hold every shard DONE up to `cut`.
  uint32_t CountBehind(ServerId server, ServerIncarnation incarnation, DoneSeq cut) const;
  /// The state of a partition besides its entry and its manifest; it is not journaled.
  struct Seen {
    /// The owner has reported that it serves the entry's epoch.
    bool serving = false;
    /// None: nothing yet of the present owner's process.
    std::optional<PartitionTraffic> traffic;
    /// When the manifest's snapshot was accepted; none: by an earlier master, or there is none.
    std::optional<TimePoint> accepted_at;
  };
  Seen SeenOf(PartitionId id) const;

  /// Appends what changed since the last call; version and restore epoch are in the meta record.
  void Collect(std::vector<Mutation>* mutations);

 private:
  struct Asked {
    SnapshotNumber number;
    DoneSeq cut;
    TimePoint at;
  };
  struct Partition {
    PartitionEntry entry;
    Manifest manifest;
    // Not journaled.
    /// The version of the entry's last change; 0: none since this master began.
    MapVersion changed_in;
    /// The epoch that the owner's last heartbeat showed.
    OwnerEpoch reported;
    /// The newest accepted snapshot that the owner knows, from the heartbeat that showed
    /// `reported`. Valid only if `reported` is the entry's epoch.
    SnapshotNumber known_accepted;
    std::optional<Asked> asked;
    TimePoint last_asked;
    std::optional<PartitionTraffic> traffic;
    std::optional<TimePoint> accepted_at;
  };
  bool OwnedBy(const Partition& partition, ServerId server, ServerIncarnation incarnation) const {
    return partition.entry.owner == server && partition.entry.owner_incarnation == incarnation;
  }
  /// True if the process is the partition's owner under this epoch. A partition that waits for a
  /// process has no owner.
  bool IsFromOwner(const Partition& partition, ServerId server, ServerIncarnation incarnation,
                   OwnerEpoch epoch) const;
  void Restore(uint32_t id, ServerIncarnation incarnation, Restored* restored);
  /// The workers' map is about to change. A version that was told never means another map. Until a
  /// worker is told the version, more changes do not make new ones: a burst of changes is one.
  void BeginChange();
  /// The partitions placed on the server, whatever its process, in ascending order. So a search for
  /// the partitions of one server looks at no others.
  const std::vector<uint32_t>& PlacedOn(ServerId server) const;
  /// Call it after partitions were placed.
  void IndexPlacements();

  MasterIncarnation incarnation_;
  MapVersion version_;
  /// The journaled version may have been sent to workers.
  bool told_ = true;
  /// All changes after it are known.
  MapVersion known_since_;
  /// As Partition::changed_in, of each server's endpoint.
  std::map<ServerId, MapVersion> endpoints_changed_in_;
  RestoreEpoch restore_epoch_;
  std::vector<Partition> partitions_;
  std::map<ServerId, std::vector<uint32_t>> placed_;
  uint64_t snapshot_count_ = 0;
  DoneSeq min_cut_;
  /// Partitions whose cut is min_cut_; 0: count them again.
  size_t at_min_cut_ = 0;
  std::set<uint32_t> dirty_;
};

}  // namespace muster
