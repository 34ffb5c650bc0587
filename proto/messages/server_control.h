#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/interval_set.h"
#include "base/words/limits.h"
#include "base/words/types.h"
#include "proto/messages/job_identity.h"
#include "proto/messages/node_figures.h"
#include "proto/messages/partition_map.h"
#include "proto/messages/table_spec.h"

/// What servers and the master tell each other: ServerService of proto/control.proto as plain
/// values. Each struct is the message of its name, and its list (proto/fields) says how.
namespace muster {

/// A snapshot of one partition as the manifest names it: files in order, base first.
struct SnapshotFile {
  std::string name;  // relative to the snapshot directory
  uint64_t bytes = 0;
  SnapshotNumber number;  // of the snapshot that wrote it
  static void Fields(auto& f, auto& s) {
    f(1, "name", s.name, {.most = most::kNameBytes});
    f(2, "bytes", s.bytes);
    f(3, "number", s.number);
  }
  friend bool operator==(const SnapshotFile&, const SnapshotFile&) = default;
};
struct Manifest {
  SnapshotNumber number;  // none: the partition has never been snapshotted and starts empty
  DoneSeq cut;
  std::vector<SnapshotFile> files;
  static void Fields(auto& f, auto& s) {
    f(1, "number", s.number);
    f(2, "cut", s.cut);
    f(3, "files", s.files, {.most = most::kFilesOfChain});
  }
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

struct OwnCommand {
  PartitionId partition;
  OwnerEpoch epoch;
  OwnerEpoch since;
  OwnerEpoch copy;
  bool restored = false;
  Manifest manifest;
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition);
    f(2, "epoch", s.epoch);
    f(3, "since", s.since);
    f(4, "copy", s.copy);
    f(5, "restored", s.restored);
    f(6, "manifest", s.manifest);
  }
};
struct SnapshotCommand {
  PartitionId partition;
  OwnerEpoch epoch;
  DoneSeq cut;
  SnapshotNumber number;
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition);
    f(2, "epoch", s.epoch);
    f(3, "cut", s.cut);
    f(4, "number", s.number);
  }
};
/// What partitions may forget, as state: drop window[S] for every S in it, and adopt `floor`.
struct ForgetState {
  uint64_t version = 0;
  LeaseToken floor;
  /// Of epochs of which some shards are forgotten.
  std::map<std::pair<DatasetId, EpochIndex>, IntervalSet> shards;
  /// The epochs of which all shards are. There may be very many.
  std::map<DatasetId, IntervalSet> epochs;

  bool Contains(const ShardId& shard) const {
    const auto whole = epochs.find(shard.dataset);
    if (whole != epochs.end() && whole->second.Contains(shard.epoch.value())) return true;
    const auto found = shards.find({shard.dataset, shard.epoch});
    return found != shards.end() && found->second.Contains(shard.index.value());
  }
  bool empty() const { return shards.empty() && epochs.empty(); }
  static void Fields(auto& f, auto& s) {
    f(1, "version", s.version);
    f(2, "floor", s.floor);
    f(3, "shards", s.shards, {.inner_most = most::kIntervals});
    f(4, "epochs", s.epochs);
  }
};
struct AcceptedSnapshot {
  PartitionId partition;
  SnapshotNumber number;
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition);
    f(2, "number", s.number);
  }
};

struct OwnedPartition {
  PartitionId partition;
  OwnerEpoch epoch;
  /// The newest snapshot this server knows to be accepted.
  SnapshotNumber accepted;
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition);
    f(2, "epoch", s.epoch);
    f(3, "accepted", s.accepted);
  }
};
struct SnapshotReport {
  PartitionId partition;
  OwnerEpoch epoch;
  /// The whole chain; `files` equals the accepted chain when nothing changed since (a new cut
  /// without a file).
  Manifest manifest;
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition);
    f(2, "epoch", s.epoch);
    f(3, "manifest", s.manifest);
  }
};
struct MissingReport {
  PartitionId partition;
  OwnerEpoch epoch;
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition);
    f(2, "epoch", s.epoch);
  }
};
struct RegisterServerRequest {
  std::string name;    // node name, "ps-0": the number is the ServerId
  uint64_t nonce = 0;  // the same process repeats it, another one cannot have it
  std::vector<std::vector<std::string>> lanes;
  StartNumber start;
  std::string version;  // of the program
  static void Fields(auto& f, auto& s) {
    f(1, "name", s.name, {.most = most::kNameBytes});
    f(2, "nonce", s.nonce);
    kLanesField(f, 3, s.lanes);
    f(4, "version", s.version, {.most = most::kNameBytes});
    f(5, "start", s.start);
  }
};
/// What the master's core tells a server, and what its shell adds about the job.
struct RegisterServerReply {
  MasterIncarnation master_incarnation;
  ServerId id;
  ServerIncarnation incarnation;
  std::string job;  // its name
  uint64_t seed = 0;
  uint32_t partition_count = 0;
  std::string snapshot_directory;
  std::chrono::milliseconds heartbeat_interval{0};
  std::string job_id;
  static void Fields(auto& f, auto& s) {
    f(1, "master_incarnation", s.master_incarnation);
    f(2, "id", s.id);
    f(3, "incarnation", s.incarnation);
    f(4, "job", s.job);
    f(5, "seed", s.seed);
    f(6, "partition_count", s.partition_count);
    f(7, "snapshot_directory", s.snapshot_directory, {.raw = true});
    f(8, "heartbeat_interval_ms", s.heartbeat_interval);
    f(9, "job_id", s.job_id);
  }
};
inline JobIdentity JobOf(const RegisterServerReply& registered) {
  return {registered.job_id, registered.job};
}

struct ServerExchangeRequest {
  ServerId id;
  ServerIncarnation incarnation;
  uint64_t sequence = 0;
  std::vector<OwnedPartition> owned;
  std::vector<SnapshotReport> snapshots;
  std::vector<MissingReport> missing;
  /// Tables known: all with id <= this.
  TableId newest_table;
  uint64_t forget_version = 0;
  ServerCounters counters;
  /// A snapshot could not be written ("no space left on device"). The job continues, and the
  /// operator is told.
  std::string snapshot_error;
  /// As above for a snapshot that could not be read: its partition is not served.
  std::string restore_error;
  /// As above for an export that a table starts from: workers wait for the table.
  std::string warm_start_error;
  /// An error that a retry cannot fix: the job fails with it.
  std::string fatal_error;
  /// Not in every call; missing ones are unchanged.
  std::vector<PartitionTraffic> traffic;
  /// It was told to end, and asks for snapshots of its partitions first.
  bool leaving = false;
  /// Of this process, or its container; 0 bytes of memory: not known.
  ProcessUsage usage;
  static void Fields(auto& f, auto& s) {
    f(1, "id", s.id);
    f(2, "incarnation", s.incarnation);
    f(3, "sequence", s.sequence);
    f(4, "owned", s.owned, {.most = most::kPartitions});
    f(5, "snapshots", s.snapshots, {.most = most::kPartitions});
    f(6, "missing", s.missing, {.most = most::kPartitions});
    f(7, "newest_table", s.newest_table);
    f(8, "forget_version", s.forget_version);
    f(9, "counters", s.counters);
    f(10, "snapshot_error", s.snapshot_error);
    f(11, "warm_start_error", s.warm_start_error);
    f(12, "fatal_error", s.fatal_error);
    f(13, "traffic", s.traffic, {.most = kTrafficPerCallMax});
    f(14, "leaving", s.leaving);
    f(15, "restore_error", s.restore_error);
    f(16, "usage", s.usage);
  }
};
struct ServerExchangeReply {
  MasterIncarnation master_incarnation;
  /// The master does not know this incarnation (any more). Register again, and serve nothing
  /// meanwhile.
  bool unknown_incarnation = false;
  std::vector<TableSpec> tables;
  std::vector<OwnCommand> owns;
  std::vector<SnapshotCommand> snapshots;
  std::vector<AcceptedSnapshot> accepted;
  std::optional<ForgetState> forget;
  std::chrono::milliseconds heartbeat_interval{0};
  /// Its drain, or the job, is over, so a longer wait would save nothing.
  bool drained = false;
  static void Fields(auto& f, auto& s) {
    f(1, "master_incarnation", s.master_incarnation);
    f(2, "unknown_incarnation", s.unknown_incarnation);
    f(3, "tables", s.tables, {.most = most::kTables});
    f(4, "owns", s.owns, {.most = most::kPartitions});
    f(5, "snapshots", s.snapshots, {.most = most::kPartitions});
    f(6, "accepted", s.accepted, {.most = most::kPartitions});
    f(7, "forget", s.forget);
    f(8, "heartbeat_interval_ms", s.heartbeat_interval);
    f(9, "drained", s.drained);
  }
};

}  // namespace muster
