#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sharding/interval_set.h"
#include "sharding/metrics.h"
#include "sharding/node_figures.h"
#include "sharding/partition_map.h"
#include "sharding/table_spec.h"
#include "sharding/types.h"

/// The messages of the control plane as plain values: what the pure cores of master, servers and
/// workers exchange. proto/control.proto is their form on the wire; field by field the same.
namespace muster {

/// Offsets [begin, end) of a topic partition. Not every offset is a record.
struct StreamWork {
  std::string topic;
  TopicPartition partition;
  uint64_t begin = 0;
  uint64_t end = 0;
  friend bool operator==(const StreamWork&, const StreamWork&) = default;
};

/// What a worker needs to read a shard. Of a file it is filled in by the master's shell from the
/// source index; of a stream by its core.
struct ShardWork {
  std::string dataset_name;
  DatasetMode mode = DatasetMode::kTrain;
  std::string path;
  /// The source's pin: a file of another size, or whose sampled blocks hash differently, must be
  /// refused.
  uint64_t source_bytes = 0;
  uint64_t source_hash = 0;
  /// Records [first_record, first_record + record_count) of the source (header not counted), bytes
  /// [byte_begin, byte_end).
  uint64_t first_record = 0;
  uint32_t record_count = 0;
  uint64_t byte_begin = 0;
  uint64_t byte_end = 0;
  uint32_t minibatch_size = 0;
  /// The first line of the source is a header (it is in no shard).
  bool has_header = false;
  /// Records of the shard run in the order of RecordOrder(shuffle_seed, record_count); 0 = file
  /// order.
  uint64_t shuffle_seed = 0;
  /// Job-wide position of the shard's first minibatch; learning-rate schedules are functions of it.
  uint64_t first_step = 0;
  /// The shard is of a topic: there is no path, no bytes, no order, and `record_count` is end -
  /// begin, the most that it can hold.
  std::optional<StreamWork> stream;
  friend bool operator==(const ShardWork&, const ShardWork&) = default;
};

struct ShardGrant {
  ShardId shard;
  LeaseToken token;
  RestoreEpoch restore_epoch;
  ShardWork work;
};

enum class LeasePhase : uint8_t {
  kQueued = 0,     // granted, not yet given to the trainer
  kComputing = 1,  // the trainer is in the shard's loop
  kPushing = 2,    // all minibatches committed by the trainer; parts or the done are outstanding
};

struct HeldLease {
  ShardId shard;
  LeaseToken token;
  RestoreEpoch restore_epoch;
  RunNumber run;
  LeasePhase phase = LeasePhase::kQueued;
  /// Minibatches handed to the trainer in this run.
  uint32_t minibatches_started = 0;
};

struct DoneReport {
  ShardId shard;
  LeaseToken token;
  /// The R of the map whose owners have every part; of an evaluate shard the R at the grant.
  RestoreEpoch restore_epoch;
  RunNumber run;
  ShardMetrics metrics;
};

/// Why a shard that did not fail was handed back.
enum class HandBack : uint8_t {
  kLeaving = 0,    // the worker leaves; also: an older SDK, not known. Charged to nobody
  kByTrainer = 1,  // the trainer left the shard before its end: charged when nothing comes of it
  kShortage = 2,   // the node lacks something that comes back (files, memory, disk): to nobody
};

/// A lease given up: failed by the trainer, or handed back.
struct ReturnedLease {
  ShardId shard;
  LeaseToken token;
  /// Why it failed; none: it was handed back.
  std::optional<std::string> failure;
  /// Set when `failure` is no shard's fault and retrying cannot help (a changed source file): the
  /// job fails with it.
  bool fatal = false;
  /// Read only when there is no `failure`.
  HandBack hand_back = HandBack::kLeaving;
  /// Of kShortage: what the node lacks.
  std::string shortage;
  /// Minibatches handed to the trainer in the lease's last run.
  uint32_t minibatches_started = 0;
};

/// Heartbeat, leases, dones and re-assertions in one call. Idempotent: every item is named by its
/// token.
struct WorkerExchangeRequest {
  std::string worker;        // node name, "worker-0"
  uint64_t incarnation = 0;  // chosen at random by the process
  uint64_t sequence =
      0;  // grows with every call of the incarnation; the master ignores the state of older calls
  MapVersion map_version;
  /// The newest token this incarnation has been granted.
  LeaseToken newest_grant;
  /// Everything held, done or not, until the verdict came.
  std::vector<HeldLease> held;
  std::vector<DoneReport> done;
  std::vector<ReturnedLease> returned;
  /// Shards wanted besides those held.
  uint32_t want = 0;
  WorkerTimes times;
  /// Not in every call; who is missing is unchanged.
  std::vector<PeerTimes> peers;
  /// Of every dataset that is a topic and of which something was applied.
  std::vector<DatasetDelays> delays;
};

enum class DoneCode : uint8_t {
  kAccepted = 0,
  kRefused = 1,   // the lease is gone: drop the shard
  kReverify = 2,  // partitions were restored: ask them what they lack, under the R of the verdict
};

struct DoneVerdict {
  ShardId shard;
  LeaseToken token;
  RunNumber run;
  DoneCode code = DoneCode::kAccepted;
  RestoreEpoch restore_epoch;
};

enum class JobDirective : uint8_t {
  kWork = 0,   // WAIT when nothing was granted: ask again
  kEnd = 1,    // every shard is COMMITTED or FAILED, or the job was cancelled
  kDrain = 2,  // finish or hand back what is held, then leave
};

struct WorkerExchangeReply {
  MasterIncarnation master_incarnation;
  JobDirective directive = JobDirective::kWork;
  std::vector<ShardGrant> grants;
  std::vector<DoneVerdict> verdicts;
  /// Held tokens that are no longer leases: drop their shards.
  std::vector<LeaseToken> lost;
  /// Present when newer than the worker's.
  std::optional<PartitionMap> map;
  /// When to call again at the latest.
  std::chrono::milliseconds heartbeat_interval{0};
};

/// A snapshot of one partition as the manifest names it: files in order, base first.
struct SnapshotFile {
  std::string name;  // relative to the snapshot directory
  uint64_t bytes = 0;
  SnapshotNumber number;  // of the snapshot that wrote it
  friend bool operator==(const SnapshotFile&, const SnapshotFile&) = default;
};
struct Manifest {
  SnapshotNumber number;  // none: the partition has never been snapshotted and starts empty
  DoneSeq cut;
  std::vector<SnapshotFile> files;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

struct OwnCommand {
  PartitionId partition;
  OwnerEpoch epoch;
  OwnerEpoch since;
  OwnerEpoch copy;
  bool restored = false;
  Manifest manifest;
};
struct SnapshotCommand {
  PartitionId partition;
  OwnerEpoch epoch;
  DoneSeq cut;
  SnapshotNumber number;
};
/// What partitions may forget, as state: drop window[S] for every S in `shards`, and take `floor`
/// over.
struct ForgetState {
  uint64_t version = 0;
  LeaseToken floor;
  std::map<std::pair<DatasetId, EpochIndex>, IntervalSet> shards;
};
struct AcceptedSnapshot {
  PartitionId partition;
  SnapshotNumber number;
};

struct OwnedPartition {
  PartitionId partition;
  OwnerEpoch epoch;
  /// The newest snapshot this server knows to be accepted.
  SnapshotNumber accepted;
};
struct SnapshotReport {
  PartitionId partition;
  OwnerEpoch epoch;
  /// The whole chain; `files` equals the accepted chain when nothing changed since (a new cut
  /// without a file).
  Manifest manifest;
};
struct MissingReport {
  PartitionId partition;
  OwnerEpoch epoch;
};
struct RegisterServerRequest {
  std::string name;    // node name, "ps-0": the number is the ServerId
  uint64_t nonce = 0;  // the same process repeats it, another one cannot have it
  std::vector<std::vector<std::string>> lanes;
  StartNumber start;
};
struct RegisterServerReply {
  MasterIncarnation master_incarnation;
  ServerId id;
  ServerIncarnation incarnation;
};

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
  /// A snapshot could not be written ("no space left on device"); the job goes on, the operator is
  /// told.
  std::string snapshot_error;
  /// As above for a snapshot that could not be read: its partition is not served.
  std::string restore_error;
  /// As above for an export that a table starts from: workers wait for the table.
  std::string warm_start_error;
  /// What no repetition can help: the job fails with it.
  std::string fatal_error;
  /// Not in every call; who is missing is unchanged.
  std::vector<PartitionTraffic> traffic;
  /// It was told to end and would have its partitions snapshotted first.
  bool leaving = false;
};
struct ServerExchangeReply {
  MasterIncarnation master_incarnation;
  /// The master does not know this incarnation (any more): register again, serve nothing meanwhile
  /// that it does not own.
  bool unknown_incarnation = false;
  std::vector<TableSpec> tables;
  std::vector<OwnCommand> owns;
  std::vector<SnapshotCommand> snapshots;
  std::vector<AcceptedSnapshot> accepted;
  std::optional<ForgetState> forget;
  std::chrono::milliseconds heartbeat_interval{0};
  /// Its drain is over, or the job is: waiting longer saves nothing.
  bool drained = false;
};

}  // namespace muster
