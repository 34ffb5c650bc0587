#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words/limits.h"
#include "base/words/types.h"
#include "proto/messages/metrics.h"
#include "proto/messages/node_figures.h"
#include "proto/messages/partition_map.h"
#include "proto/messages/shard_work.h"
#include "proto/messages/table_spec.h"

/// What workers and the master tell each other: WorkerService of proto/control.proto as plain
/// values. Each struct is the message of its name, and its list (proto/fields) says how.
namespace muster {

struct ShardGrant {
  ShardId shard;
  LeaseToken token;
  RestoreEpoch restore_epoch;
  ShardWork work;
  static void Fields(auto& f, auto& s) {
    f(1, "shard", s.shard);
    f(2, "token", s.token);
    f(3, "restore_epoch", s.restore_epoch);
    f(4, "work", s.work);
  }
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
  static void Fields(auto& f, auto& s) {
    f(1, "shard", s.shard);
    f(2, "token", s.token);
    f(3, "restore_epoch", s.restore_epoch);
    f(4, "run", s.run);
    f(5, "phase", s.phase, {.most = 2});
    f(6, "minibatches_started", s.minibatches_started);
  }
};

struct DoneReport {
  ShardId shard;
  LeaseToken token;
  /// The R of the map whose owners have every part; of an evaluate shard the R at the grant.
  RestoreEpoch restore_epoch;
  RunNumber run;
  ShardMetrics metrics;
  static void Fields(auto& f, auto& s) {
    f(1, "shard", s.shard);
    f(2, "token", s.token);
    f(3, "restore_epoch", s.restore_epoch);
    f(4, "run", s.run);
    f(5, "metrics", s.metrics);
  }
};

/// Why a shard that did not fail was handed back.
enum class HandBack : uint8_t {
  kUncharged = 0,  // the worker leaves, or holds too many (an older SDK: unknown); not charged
  kByTrainer = 1,  // the trainer left the shard before its end: charged if it makes no progress
  kShortage = 2,   // the node temporarily lacks something (descriptors, memory, disk); not charged
};

/// A lease given up: failed by the trainer, or handed back.
struct ReturnedLease {
  ShardId shard;
  LeaseToken token;
  bool failed = false;
  /// Why it failed; of kShortage: what the node lacks.
  std::string reason;
  /// Set if no shard is to blame and a retry cannot help (a changed source file): the job fails
  /// with it.
  bool fatal = false;
  /// Read only when it has not failed.
  HandBack hand_back = HandBack::kUncharged;
  /// Minibatches handed to the trainer in the lease's last run.
  uint32_t minibatches_started = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "shard", s.shard);
    f(2, "token", s.token);
    f(3, "failed", s.failed);
    f(4, "reason", s.reason);
    f(5, "fatal", s.fatal);
    f(6, "hand_back", s.hand_back, {.most = 2});
    f(7, "minibatches_started", s.minibatches_started);
  }
};

/// Heartbeat, leases, dones and re-assertions in one call. Idempotent: every item is named by its
/// token.
/// A server to which the worker has not been able to connect for some seconds.
struct UnreachableServer {
  ServerId server;
  ServerIncarnation incarnation;
  std::string text;  // the address, and what went wrong
  static void Fields(auto& f, auto& s) {
    f(1, "server", s.server);
    f(2, "incarnation", s.incarnation);
    f(3, "text", s.text, {.most = most::kNameBytes});
  }
  friend bool operator==(const UnreachableServer&, const UnreachableServer&) = default;
};
/// In one call, at most.
inline constexpr size_t kUnreachablePerCallMax = 64;

struct WorkerExchangeRequest {
  std::string worker;        // node name, "worker-0"
  uint64_t incarnation = 0;  // chosen at random by the process
  uint64_t sequence =
      0;  // grows with every call of the incarnation; the master ignores the state of older calls
  MapVersion map_version;
  /// The newest token this incarnation has been granted.
  LeaseToken newest_grant;
  /// Every held shard, done or not, until its verdict has arrived.
  std::vector<HeldLease> held;
  std::vector<DoneReport> done;
  std::vector<ReturnedLease> returned;
  /// Shards wanted besides those held.
  uint32_t want = 0;
  WorkerTimes times;
  /// Not in every call; missing ones are unchanged.
  std::vector<PeerTimes> peers;
  /// One for each dataset that is a topic and has applied records.
  std::vector<DatasetDelays> delays;
  /// Requests the changes of the map from this version on (the version of its own map); 0: the
  /// whole map.
  MapVersion map_base;
  /// As it is now.
  std::vector<UnreachableServer> unreachable;
  /// Of this process, or its container; 0 bytes of memory: not known.
  ProcessUsage usage;
  /// Why outputs of predictions cannot be written now; empty: they can, or there are none.
  std::string unwritten;
  static void Fields(auto& f, auto& s) {
    f(1, "worker", s.worker, {.most = most::kNameBytes});
    f(2, "incarnation", s.incarnation);
    f(3, "sequence", s.sequence);
    f(4, "map_version", s.map_version);
    f(5, "newest_grant", s.newest_grant);
    f(6, "held", s.held, {.most = most::kLeases});
    f(7, "done", s.done, {.most = most::kLeases});
    f(8, "returned", s.returned, {.most = most::kLeases});
    f(9, "want", s.want, {.most = most::kLeases});
    f(10, "times", s.times);
    f(11, "peers", s.peers, {.most = kPeersPerCallMax});
    f(12, "delays", s.delays, {.most = kDelaysPerCallMax});
    f(13, "map_base", s.map_base);
    f(14, "unreachable", s.unreachable, {.most = kUnreachablePerCallMax});
    f(15, "usage", s.usage);
    f(16, "unwritten", s.unwritten);
  }
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
  static void Fields(auto& f, auto& s) {
    f(1, "shard", s.shard);
    f(2, "token", s.token);
    f(3, "run", s.run);
    f(4, "code", s.code, {.most = 2});
    f(5, "restore_epoch", s.restore_epoch);
  }
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
  /// Present if it is newer than the worker's, unless changes are present.
  std::optional<PartitionMap> map;
  /// The latest time of the next call.
  std::chrono::milliseconds heartbeat_interval{0};
  /// Present when the master's map is newer than the worker's and it knows what changed since
  /// map_base.
  std::optional<PartitionMapChanges> map_changes;
  static void Fields(auto& f, auto& s) {
    f(1, "master_incarnation", s.master_incarnation);
    f(2, "directive", s.directive, {.most = 2});
    f(3, "grants", s.grants, {.most = most::kLeases});
    f(4, "verdicts", s.verdicts, {.most = most::kLeases});
    f(5, "lost", s.lost, {.most = most::kLeases});
    f(6, "map", s.map);
    f(7, "heartbeat_interval_ms", s.heartbeat_interval);
    f(8, "map_changes", s.map_changes);
  }
};

}  // namespace muster
