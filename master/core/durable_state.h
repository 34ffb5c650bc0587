#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/interval_set.h"
#include "base/words/types.h"
#include "master/core/done_record.h"
#include "master/core/epochs/epoch_record.h"
#include "master/core/kept_record.h"
#include "master/group_core/group_records.h"
#include "proto/messages/control.h"
#include "proto/messages/node_role.h"
#include "proto/messages/node_state.h"
#include "proto/messages/partition_map.h"
#include "proto/messages/table_spec.h"
#include "proto/status/job_state.h"
#include "sharding/shard_queue.h"
#include "sharding/stream/stream_types.h"

/// The contents of the master's journal, as plain values. The core starts from a DurableState and
/// reports every change to it as Mutations. A record's list (proto/fields) is its form on disk;
/// proto/journal.proto specifies it.
namespace muster {

/// Counters that survive restarts of the master; written along with other records, at the latest
/// after a second, so that a crash may lose the last counts (never a shard).
struct JobTotals {
  uint64_t redelivered_minibatches = 0;
  uint64_t replayed_shards = 0;
  uint64_t reverified_runs = 0;
  uint64_t reasserted_leases = 0;
  uint64_t expired_leases = 0;
  uint64_t refused_dones = 0;
  uint64_t snapshots_accepted = 0;
  uint64_t master_restarts = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "redelivered_minibatches", s.redelivered_minibatches);
    f(2, "replayed_shards", s.replayed_shards), f(3, "reverified_runs", s.reverified_runs);
    f(4, "reasserted_leases", s.reasserted_leases), f(5, "expired_leases", s.expired_leases);
    f(6, "refused_dones", s.refused_dones), f(7, "snapshots_accepted", s.snapshots_accepted);
    f(8, "master_restarts", s.master_restarts);
  }
  friend bool operator==(const JobTotals&, const JobTotals&) = default;
};

struct MetaRecord {
  MasterIncarnation incarnation;
  DoneSeq done_seq;
  DoneSeq commit_seq;
  MapVersion map_version;
  RestoreEpoch restore_epoch;
  ServerIncarnation newest_server_incarnation;
  JobState state = JobState::kUnknown;
  std::string reason;
  std::string run_id;
  JobTotals totals;
  /// Where the files of the manifests lie.
  std::string snapshot_directory;
  /// When the run began; 0: a journal that does not say it.
  WallTime run_began{0};
  /// For how long the runs before it ran, together.
  std::chrono::milliseconds earlier_runs{0};
  /// Epochs that have ended, of a job that keeps weights of epochs or may stop early.
  uint32_t epochs_ended = 0;
  /// When the job was last known to run, to within RunClock::kSeenInterval.
  WallTime seen{0};
  /// Of a job that may stop early: the last epoch that counted as better, from 1, and by which
  /// rule. 0: none.
  uint32_t gain_epoch = 0;
  std::string gain_rule;
  static void Fields(auto& f, auto& s) {
    f(1, "incarnation", s.incarnation);
    f(2, "done_seq", s.done_seq), f(3, "commit_seq", s.commit_seq);
    f(4, "map_version", s.map_version);
    f(5, "restore_epoch", s.restore_epoch);
    f(6, "newest_server_incarnation", s.newest_server_incarnation);
    f(7, "state", s.state, {.most = 6});
    f(8, "reason", s.reason);
    f(9, "run_id", s.run_id);
    f(10, "totals", s.totals);
    f(11, "snapshot_directory", s.snapshot_directory);
    f(12, "run_began_us", s.run_began), f(13, "earlier_runs_ms", s.earlier_runs);
    f(14, "epochs_ended", s.epochs_ended), f(15, "seen_us", s.seen);
    f(16, "gain_epoch", s.gain_epoch), f(17, "gain_rule", s.gain_rule);
  }
  friend bool operator==(const MetaRecord&, const MetaRecord&) = default;
};

/// What went wrong with one shard so far.
struct FailureRecord {
  ShardId shard;
  uint32_t failures = 0;       // charged to the trainer
  uint32_t node_failures = 0;  // they do not count for the shard
  std::vector<std::string> reasons;
  bool failed = false;  // the shard is FAILED
  bool lost = false;    // because retention has taken its records
  /// Token of the newest lease that was charged: a failure reported again after a master's restart
  /// is the same failure.
  LeaseToken charged;
  static void Fields(auto& f, auto& s) {
    f(1, "shard", s.shard);
    f(2, "failures", s.failures);
    f(3, "node_failures", s.node_failures);
    f(4, "reasons", s.reasons);
    f(5, "failed", s.failed);
    f(6, "charged", s.charged);
    f(7, "lost", s.lost);
  }
};
struct EraseFailure {
  ShardId shard;
};

struct PartitionRecord {
  PartitionId partition;
  PartitionEntry entry;
  Manifest manifest;
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition);
    f(2, "entry", s.entry);
    f(3, "manifest", s.manifest);
  }
};

/// For journals without told_start.
struct OldNodeRecord {
  uint32_t restarts = 0;
  static void Fields(auto& f, auto& s) { f(6, "restarts", s.restarts); }
};
struct NodeRecord {
  std::string name;
  std::string role;  // ToString(NodeRole), as Is() compares it; any other word is of no known role
  NodeState state = NodeState::kStarting;
  /// The newest process that its supervisor told of in this run; 0: none.
  StartNumber told_start;
  /// The newest process whose exit was told; 0: none. Supervisors may tell an exit several times.
  StartNumber exit_told;
  uint64_t pid = 0;  // of told_start, for people
  /// Of a worker: what the process chose. Of a server: what the master gave it.
  uint64_t incarnation = 0;
  /// The newest start that a process has said of itself; 0: none, or it was started by hand.
  StartNumber start;
  std::string last_exit;
  std::string host;  // of a node that `muster join` runs: its machine
  uint64_t records_committed = 0;
  // Servers
  uint64_t nonce = 0;
  std::vector<uint64_t> superseded_nonces;
  std::vector<std::vector<std::string>> lanes;
  /// Parts skipped and stale: of the processes before this one, and of this one as last heard.
  uint64_t skipped_before = 0;
  uint64_t stale_before = 0;
  uint64_t skipped_now = 0;
  uint64_t stale_now = 0;

  bool Is(NodeRole which) const { return role == ToString(which); }

  static void Fields(auto& f, auto& s) {
    f(1, "name", s.name);
    f(2, "role", s.role);
    f(3, "state", s.state);
    f(4, "pid", s.pid);
    f(5, "incarnation", s.incarnation);
    // 6: OldNodeRecord
    f(7, "last_exit", s.last_exit);
    f(8, "records_committed", s.records_committed);
    f(9, "nonce", s.nonce);
    f(10, "superseded_nonces", s.superseded_nonces);
    f(11, "lanes", s.lanes);
    f(12, "skipped_before", s.skipped_before);
    f(13, "stale_before", s.stale_before);
    f(14, "skipped_now", s.skipped_now);
    f(15, "stale_now", s.stale_now);
    f(16, "start", s.start), f(17, "told_start", s.told_start);
    f(18, "host", s.host), f(19, "exit_told", s.exit_told);
  }
};

struct EraseNode {
  std::string name;
};

struct EventRecord {
  uint64_t sequence = 0;
  WallTime wall{0};
  std::string kind;
  std::string node;
  std::string text;
  static void Fields(auto& f, auto& s) {
    f(1, "sequence", s.sequence), f(2, "wall_us", s.wall), f(3, "kind", s.kind);
    f(4, "node", s.node), f(5, "text", s.text);
  }
};
/// Events with sequence <= last are gone.
struct EraseEvents {
  uint64_t last = 0;
};

/// A dataset that is a topic.
struct StreamRecord {
  DatasetId dataset;
  /// Of the next range that is cut.
  ShardIndex next_shard;
  uint64_t next_step = 0;
  /// The id of the brokers' cluster. Offsets are valid in this cluster only.
  std::string cluster;
  static void Fields(auto& f, auto& s) {
    f(1, "dataset", s.dataset), f(2, "next_shard", s.next_shard), f(3, "next_step", s.next_step);
    f(4, "cluster", s.cluster);
  }
};
struct StreamPositionRecord {
  DatasetId dataset;
  StreamPosition position;
  static void Fields(auto& f, auto& s) {
    f(1, "dataset", s.dataset), f(2, "partition", s.position.partition);
    f(3, "begin", s.position.begin), f(4, "cut", s.position.cut), f(5, "end", s.position.end);
  }
  std::optional<std::string> Wrong() const {
    if (position.begin <= position.cut) return std::nullopt;
    return "a stream was cut before its begin";
  }
};
/// A shard of a stream that is not COMMITTED.
struct StreamShardRecord {
  ShardId shard;
  StreamShard cut;
  static void Fields(auto& f, auto& s) {
    f(1, "shard", s.shard);
    f(5, "first_step", s.cut.first_step), f(6, "seen_us", s.cut.seen);
    f(7, "ranges", s.cut.ranges, {.most = most::kRangesOfShard});
  }
  std::optional<std::string> Wrong() const;
};
struct EraseStreamShard {
  ShardId shard;
};

using Mutation =
    std::variant<MetaRecord, DoneRecord, EraseDone, EpochRecord, FailureRecord, EraseFailure,
                 PartitionRecord, TableSpec, NodeRecord, EventRecord, EraseEvents, StreamRecord,
                 StreamPositionRecord, StreamShardRecord, EraseStreamShard, EraseNode, KeptRecord,
                 EraseKept, GroupModelRecord, GroupRecord, StepRecord, CheckpointRecord, EraseEpoch,
                 WholeEpochsRecord>;

struct DurableState {
  /// None: a new journal.
  std::optional<MetaRecord> meta;
  std::map<DoneSeq, DoneRecord> done;
  std::map<std::pair<DatasetId, EpochIndex>, EpochRecord> epochs;
  std::map<DatasetId, WholeEpochsRecord> whole_epochs;
  std::map<ShardId, FailureRecord> failures;
  std::map<PartitionId, PartitionRecord> partitions;
  std::map<TableId, TableSpec> tables;
  std::map<std::string, NodeRecord> nodes;
  std::map<uint64_t, EventRecord> events;
  std::map<DatasetId, StreamRecord> streams;
  std::map<std::pair<DatasetId, TopicPartition>, StreamPosition> stream_positions;
  std::map<ShardId, StreamShard> stream_shards;
  std::map<EpochIndex, std::map<PartitionId, Manifest>> kept;
  GroupRecords group;
};

/// What the mutation means: the definition that every journal must agree with.
void Apply(const Mutation& mutation, DurableState* state);

}  // namespace muster
