#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/words/types.h"
#include "job/policy_options.h"
#include "job/source_spec.h"
#include "store/names/place.h"

namespace muster {

struct DatasetSpec {
  std::string name;
  DatasetMode mode = DatasetMode::kTrain;
  /// The source of its records.
  SourceSpec source;
  uint32_t epochs = 1;  // train only
  uint32_t minibatch_size = 256;
  /// Unless the job file says it, fewer if several train datasets are mixed.
  uint32_t minibatches_per_shard = 16;
  Shuffle shuffle = Shuffle::kNone;
  /// Train only: its share of the minibatches, beside those of the other train datasets, as long as
  /// all of them last. 0: as its share of the data.
  double weight = 0;
  /// Predict only: the place of the outputs, a folder or "s3://...".
  std::string output;
};

struct ResourceSpec {
  std::optional<double> cpu;  // cores
  std::optional<uint64_t> memory_bytes;
};

struct ReplicaSpec {
  uint32_t replicas = 1;
  /// Worker only: the range that policies may choose from. If absent, `replicas`.
  std::optional<uint32_t> replicas_min;
  std::optional<uint32_t> replicas_max;
  std::vector<std::string> command;  // worker only
  std::map<std::string, std::string> env;
  ResourceSpec requests;
  ResourceSpec limits;  // of one process, at its first start
  ResourceSpec max;     // the largest limits that policies may set
};

/// The settings of the scaler.
struct ScalerSpec {
  /// The host on which REST listens, without a port.
  std::string host = "127.0.0.1";
  std::string advertise;  // the host with which others reach it; empty: `host`
  uint32_t port = 0;      // 0 = a free one
  bool dry_run = false;
  std::vector<std::string> paused_policies;
  std::chrono::seconds cooldown{60};
  uint32_t interventions_per_hour = 12;
  /// The job file can set some of them, by thresholds.h. The others have their defaults.
  PolicyOptions policies;
};

enum class TlsUse : uint8_t {
  kAuto,    // on all TCP if any address of the job is not loopback
  kAlways,  // on loopback, too
};

/// How the job's TCP connections are protected. job/security.h evaluates it.
struct SecuritySpec {
  TlsUse tls = TlsUse::kAuto;
  bool insecure = false;  // allows plain text on addresses that are not loopback
  /// A directory with ca.crt, ROLE.crt and ROLE.key. If empty, `muster run` makes them.
  std::string certificates;
};

/// Additional settings of a job on Kubernetes.
struct KubernetesSpec {
  /// A volume that outlives the job's pods.
  struct Volume {
    uint64_t size_bytes = 0;
    std::string storage_class;  // empty: the cluster's default
    std::string claim;          // an existing PersistentVolumeClaim; empty: one is made
  };
  /// Fragments of a PodTemplateSpec. Each is the text of a JSON object; empty: there is none.
  struct PodTemplates {
    std::string all;
    std::string master;
    std::string ps;
    std::string worker;
  };

  std::string image;  // of every pod
  std::string ns;     // namespace; empty: that of the command line
  Volume state{.size_bytes = uint64_t{10} << 30, .storage_class = {}, .claim = {}};
  Volume snapshots{.size_bytes = uint64_t{50} << 30, .storage_class = {}, .claim = {}};
  PodTemplates pod_templates;
};

/// A job whose workers train as one synchronous group (docs/protocol.md, section 12).
struct GroupSpec {
  /// Records per step. If absent, the workers train asynchronously, each by itself.
  std::optional<uint32_t> global_batch;
  uint32_t members_min = 1;
  /// If absent, the largest number of workers that policies may start.
  std::optional<uint32_t> members_max;
  std::chrono::milliseconds silence_limit{5'000};
  std::chrono::milliseconds join_wait{2'000};
  /// If true, a slow member gets fewer minibatches of a step.
  bool balance = true;
};

/// A training job as its job file describes it. Defaults are filled in, bounds are checked, and
/// paths are absolute. A value. docs/job-file.md lists every field with its default and bounds, and
/// whether it may change on resume.
struct JobSpec {
  std::string name;
  uint64_t seed = 0;
  uint32_t partitions = 64;
  /// The folder where relative paths begin.
  std::string base_directory;
  std::string state_directory;
  /// A folder, or a bucket with its options (store/names/place.h).
  std::string snapshot_directory;
  S3Options s3;  // of snapshot_directory, and of exports to S3
  std::chrono::milliseconds snapshot_interval{10'000};
  std::chrono::milliseconds restore_timeout{120'000};
  std::vector<DatasetSpec> datasets;
  ReplicaSpec ps;
  ReplicaSpec worker;
  GroupSpec group;
  ResourceSpec budget;  // for all workers and servers together; absent: that of the machine
  ScalerSpec scaler;
  SecuritySpec security;
  KubernetesSpec kubernetes;

  /// The address on which the master listens. "127.0.0.1:0" means a free loopback port, which is
  /// chosen once per run.
  std::string master_address = "127.0.0.1:0";
  /// The host with which others reach the master. If empty, the host of `master_address`.
  std::string master_advertise;

  /// Where the servers listen that this job starts. For other servers, `muster join` has flags.
  struct ServerListen {
    std::string address;      // a host; empty: the address from which the server reaches the master
    std::string advertise;    // the host with which others reach it; empty: `address`
    std::string ports = "0";  // a PortRange; each lane takes the first free port
  } server_listen;
  /// This many servers, those with the highest numbers, are started elsewhere with `muster join`.
  uint32_t servers_joined = 0;

  struct Leases {
    std::chrono::milliseconds duration{10'000};  // the longest time without a heartbeat
    std::chrono::milliseconds max_age{
        600'000};  // the longest time with heartbeats but without progress
    std::chrono::milliseconds grace_period{3'000};  // after a master restart
    std::chrono::milliseconds heartbeat_interval{500};
    uint32_t failures_max = 3;  // failures of the trainer until a shard is FAILED
  } leases;

  struct Servers {
    std::chrono::milliseconds timeout{
        10'000};  // without a heartbeat, a server counts as dead after this
    std::chrono::milliseconds heartbeat_interval{200};
    uint32_t threads = 1;  // lanes per server
  } servers;

  struct Training {
    uint32_t unacknowledged_minibatches_max = 4;  // the staleness bound of Commit
    uint32_t prefetch_minibatches = 2;            // how far ahead of the loop `prepare` is called
    uint32_t shards_ahead = 2;
    std::string wire_encoding = "float32";  // or float16, bfloat16
    uint64_t rejected_records_max = 0;      // with more, the job fails
    uint64_t failed_shards_max = 100;       // with more, the job ends as failed
    Evaluation evaluation = Evaluation::kAtTheEnd;
    /// The export from which tables start whose trainer names none; empty: no export.
    std::string warm_start;
    /// Metrics as in the job file (metric_choice.h); empty: none.
    std::string keep_best;
    uint32_t keep_every = 0;  // 0: no epoch is kept because of its number
    uint32_t keep_last = 5;
    std::string stop_early_metric;
    uint32_t stop_early_patience = 3;
    double stop_early_min_delta = 0;
  } training;

  struct Restarts {
    uint32_t crash_loop_exits = 5;  // exits of one node without progress in between
    std::chrono::milliseconds backoff_initial{500};
    std::chrono::milliseconds backoff_max{30'000};
  } restarts;

  std::chrono::milliseconds drain_timeout{30'000};
};

/// True if the workers are one synchronous group.
inline bool HasGroup(const JobSpec& spec) {
  return spec.group.global_batch.has_value();
}
/// The most members of the group.
uint32_t GroupMembersMax(const JobSpec& spec);

/// The consumer group with which a job reports its positions in topics: "muster.<job>".
std::string GroupOf(const JobSpec& spec);

/// The fields that may not change on resume, each with its value as text, in a fixed order.
std::vector<std::pair<std::string, std::string>> FixedFields(const JobSpec& spec);

}  // namespace muster
