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
#include "sharding/control.h"
#include "sharding/interval_set.h"
#include "sharding/node_state.h"
#include "sharding/partition_map.h"
#include "sharding/shard_queue.h"
#include "sharding/stream/stream_types.h"
#include "sharding/table_spec.h"
#include "sharding/types.h"

/// What the master's journal holds, as plain values. The core starts from a DurableState and tells
/// every change to it as Mutations; proto/journal.proto is their form on disk.
namespace muster {

/// Numbers equal to those of v1::JobState.
enum class JobState : uint8_t {
  kUnknown = 0,
  kRunning = 1,
  kDraining = 2,
  kDrained = 3,
  kSucceeded = 4,
  kFailed = 5,
  kCancelled = 6,
};
/// "RUNNING", "DRAINED", ...
std::string_view ToString(JobState state);
/// Nothing more will happen in this run.
inline bool IsTerminal(JobState state) {
  return state >= JobState::kDrained;
}

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
  friend bool operator==(const MetaRecord&, const MetaRecord&) = default;
};

struct DoneRecord {
  DoneShard done;
  std::string worker;
  ShardMetrics metrics;
};
/// The DONE records with first <= seq <= last are gone.
struct EraseDone {
  DoneSeq first;
  DoneSeq last;
};

struct EpochRecord {
  DatasetId dataset;
  EpochIndex epoch;
  IntervalSet committed;
  uint64_t records_committed = 0;
  ShardMetrics metrics;
};

/// What went wrong with one shard so far.
struct FailureRecord {
  ShardId shard;
  uint32_t failures = 0;       // charged to the trainer
  uint32_t node_failures = 0;  // charged to nobody
  std::vector<std::string> reasons;
  bool failed = false;  // the shard is FAILED
  bool lost = false;    // because retention has taken its records
  /// Of the newest lease that was charged: a failure told again after a restart of the master is
  /// the same failure.
  LeaseToken charged;
};
struct EraseFailure {
  ShardId shard;
};

struct PartitionRecord {
  PartitionId partition;
  PartitionEntry entry;
  Manifest manifest;
};

struct NodeRecord {
  std::string name;
  std::string role;  // worker, ps, master, scaler
  NodeState state = NodeState::kStarting;
  /// The newest process that its supervisor told of in this run; 0: none.
  StartNumber told_start;
  uint64_t pid = 0;  // of told_start, for people
  /// Of a worker: what the process chose. Of a server: what the master gave it.
  uint64_t incarnation = 0;
  /// The newest start that a process has said of itself in this run; 0: none. The process of
  /// `incarnation` is it, or was started by hand.
  StartNumber start;
  std::string last_exit;
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
  /// The id that the brokers' cluster has given itself: offsets mean nothing elsewhere.
  std::string cluster;
};
struct StreamPositionRecord {
  DatasetId dataset;
  StreamPosition position;
};
/// A shard of a stream that is not COMMITTED.
struct StreamRangeRecord {
  ShardId shard;
  StreamRange range;
};
struct EraseStreamRange {
  ShardId shard;
};

using Mutation =
    std::variant<MetaRecord, DoneRecord, EraseDone, EpochRecord, FailureRecord, EraseFailure,
                 PartitionRecord, TableSpec, NodeRecord, EventRecord, EraseEvents, StreamRecord,
                 StreamPositionRecord, StreamRangeRecord, EraseStreamRange, EraseNode>;

struct DurableState {
  /// None: a new journal.
  std::optional<MetaRecord> meta;
  std::map<DoneSeq, DoneRecord> done;
  std::map<std::pair<DatasetId, EpochIndex>, EpochRecord> epochs;
  std::map<ShardId, FailureRecord> failures;
  std::map<PartitionId, PartitionRecord> partitions;
  std::map<TableId, TableSpec> tables;
  std::map<std::string, NodeRecord> nodes;
  std::map<uint64_t, EventRecord> events;
  std::map<DatasetId, StreamRecord> streams;
  std::map<std::pair<DatasetId, TopicPartition>, StreamPosition> stream_positions;
  std::map<ShardId, StreamRange> stream_ranges;
};

/// What the mutation means: the definition that every journal must agree with.
void Apply(const Mutation& mutation, DurableState* state);

}  // namespace muster
